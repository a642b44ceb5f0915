// Prints when robfig/cron runs a schedule: the times that follow a moment, or why it refuses the schedule.
// In: JSON on stdin, {"after", "times", "schedules"}. Out: for each schedule a list of times in UTC, or an error.
// Run by tools/record_cron_schedules.py.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

type request struct {
	After     time.Time `json:"after"`
	Times     int       `json:"times"`
	Schedules []string  `json:"schedules"`
}

func parse(text string) (schedule cron.Schedule, err error) {
	defer func() {
		if problem := recover(); problem != nil { // a time zone without a schedule
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	return cron.ParseStandard(text)
}

func main() {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		panic(err)
	}
	answers := []any{}
	for _, text := range asked.Schedules {
		schedule, err := parse(text)
		if err != nil {
			answers = append(answers, err.Error())
			continue
		}
		times := []string{}
		for at, count := asked.After, 0; count < asked.Times; count++ {
			at = schedule.Next(at)
			if at.IsZero() { // in five years none
				break
			}
			times = append(times, at.UTC().Format(time.RFC3339Nano))
		}
		answers = append(answers, times)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answers); err != nil {
		panic(err)
	}
}
