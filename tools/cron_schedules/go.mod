module cron_schedules

go 1.21

require github.com/robfig/cron/v3 v3.0.2-0.20210106135023-bc59245fe10e
