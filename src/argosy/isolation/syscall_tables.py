"""System call numbers for the seccomp filter, for each supported architecture.

In: nothing. Out: tables of numbers. Never: builds a filter (see seccomp.py).
"""

from __future__ import annotations

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column below, the kernel's AUDIT_ARCH
HIGHEST_KNOWN_NUMBER = 466  # newer calls are not in this table, and confined processes get ENOSYS for them

# Name: number on x86_64, number on aarch64; -1 if that architecture does not have the call.
NUMBERS = {
    # keyrings
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # ways around other checks, and large parts of the kernel
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "memfd_secret": (447, 447),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "move_pages": (279, 239), "migrate_pages": (256, 238),
    # file systems and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "setns": (308, 268),
    "open_by_handle_at": (304, 265), "quotactl": (179, 60), "quotactl_fd": (443, 443), "nfsservctl": (180, 42),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    "iopl": (172, -1), "ioperm": (173, -1), "modify_ldt": (154, -1), "uselib": (134, -1), "_sysctl": (156, -1),
    # memory and queues of a namespace that may be shared
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    # checked by their arguments, or refused in workers
    "socket": (41, 198), "socketpair": (53, 199), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "ioctl": (16, 29),
    "execve": (59, 221), "execveat": (322, 281),
}  # fmt: skip

REFUSED_CALLS = (
    "add_key", "request_key", "keyctl", "io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "userfaultfd",
    "perf_event_open", "memfd_secret", "fanotify_init", "fanotify_mark", "lookup_dcookie", "ptrace",
    "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise", "process_mrelease",
    "move_pages", "migrate_pages", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "setns", "open_by_handle_at", "quotactl", "quotactl_fd",
    "nfsservctl", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon",
    "swapoff", "acct", "syslog", "settimeofday", "clock_settime", "clock_adjtime", "sethostname",
    "setdomainname", "vhangup", "iopl", "ioperm", "modify_ldt", "uselib", "_sysctl",
)  # fmt: skip
REFUSED_WITH_SHARED_IPC = ("shmget", "msgget", "semget", "mq_open")
REFUSED_IN_WORKERS = (*REFUSED_WITH_SHARED_IPC, "socket", "socketpair", "execve", "execveat")
