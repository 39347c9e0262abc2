//! The calls that write nothing, however they end.
//!
//! Those that make, move or drop mappings are among them: the mappings themselves are left to others.

/// Calls that `libc` has no names for: `futex_wake`, `futex_wait`, `futex_requeue`.
const NEWER_FUTEX: std::ops::RangeInclusive<i64> = 454..=456;

pub(super) fn is_written_by(number: i64) -> bool {
    of_contents(number)
        || of_names(number)
        || of_descriptors(number)
        || of_processes(number)
        || of_the_rest(number)
}

fn of_contents(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_open
            | libc::SYS_openat
            | libc::SYS_openat2
            | libc::SYS_creat
            | libc::SYS_lseek
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_sync
            | libc::SYS_syncfs
            | libc::SYS_sync_file_range
            | libc::SYS_truncate
            | libc::SYS_ftruncate
            | libc::SYS_fallocate
            | libc::SYS_readahead
            | libc::SYS_fadvise64
            | libc::SYS_setxattr
            | libc::SYS_lsetxattr
            | libc::SYS_fsetxattr
            | libc::SYS_removexattr
            | libc::SYS_lremovexattr
            | libc::SYS_fremovexattr
    )
}

fn of_names(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_access
            | libc::SYS_faccessat
            | libc::SYS_faccessat2
            | libc::SYS_chdir
            | libc::SYS_fchdir
            | libc::SYS_rename
            | libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_mkdir
            | libc::SYS_mkdirat
            | libc::SYS_rmdir
            | libc::SYS_link
            | libc::SYS_linkat
            | libc::SYS_unlink
            | libc::SYS_unlinkat
            | libc::SYS_symlink
            | libc::SYS_symlinkat
            | libc::SYS_chmod
            | libc::SYS_fchmod
            | libc::SYS_fchmodat
            | libc::SYS_fchmodat2
            | libc::SYS_chown
            | libc::SYS_fchown
            | libc::SYS_lchown
            | libc::SYS_fchownat
            | libc::SYS_umask
            | libc::SYS_utime
            | libc::SYS_utimes
            | libc::SYS_utimensat
            | libc::SYS_futimesat
            | libc::SYS_mknod
            | libc::SYS_mknodat
            | libc::SYS_mount
            | libc::SYS_umount2
            | libc::SYS_mount_setattr
            | libc::SYS_pivot_root
            | libc::SYS_chroot
    )
}

fn of_descriptors(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_close
            | libc::SYS_close_range
            | libc::SYS_dup
            | libc::SYS_dup2
            | libc::SYS_dup3
            | libc::SYS_flock
            | libc::SYS_inotify_init
            | libc::SYS_inotify_init1
            | libc::SYS_inotify_add_watch
            | libc::SYS_inotify_rm_watch
            | libc::SYS_fanotify_init
            | libc::SYS_fanotify_mark
            | libc::SYS_open_by_handle_at
            | libc::SYS_memfd_create
            | libc::SYS_memfd_secret
            | libc::SYS_tee
            | libc::SYS_epoll_create
            | libc::SYS_epoll_create1
            | libc::SYS_epoll_ctl
            | libc::SYS_eventfd
            | libc::SYS_eventfd2
            | libc::SYS_signalfd
            | libc::SYS_signalfd4
            | libc::SYS_timerfd_create
            | libc::SYS_userfaultfd
            | libc::SYS_socket
            | libc::SYS_connect
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_shutdown
            | libc::SYS_bind
            | libc::SYS_listen
            | libc::SYS_open_tree
            | libc::SYS_move_mount
            | libc::SYS_fsopen
            | libc::SYS_fsconfig
            | libc::SYS_fsmount
            | libc::SYS_fspick
    )
}

fn of_processes(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_rt_sigreturn
            | libc::SYS_sched_yield
            | libc::SYS_pause
            | libc::SYS_alarm
            | libc::SYS_getpid
            | libc::SYS_gettid
            | libc::SYS_getppid
            | libc::SYS_getpgrp
            | libc::SYS_getpgid
            | libc::SYS_setpgid
            | libc::SYS_getsid
            | libc::SYS_setsid
            | libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_setuid
            | libc::SYS_setgid
            | libc::SYS_setreuid
            | libc::SYS_setregid
            | libc::SYS_setresuid
            | libc::SYS_setresgid
            | libc::SYS_setfsuid
            | libc::SYS_setfsgid
            | libc::SYS_setgroups
            | libc::SYS_fork
            | libc::SYS_vfork
            | libc::SYS_exit
            | libc::SYS_exit_group
            | libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_rt_tgsigqueueinfo
            | libc::SYS_rt_sigsuspend
            | libc::SYS_pidfd_open
            | libc::SYS_pidfd_getfd
            | libc::SYS_pidfd_send_signal
            | libc::SYS_getpriority
            | libc::SYS_setpriority
            | libc::SYS_ioprio_get
            | libc::SYS_ioprio_set
            | libc::SYS_personality
            | libc::SYS_sched_setparam
            | libc::SYS_sched_setscheduler
            | libc::SYS_sched_getscheduler
            | libc::SYS_sched_get_priority_max
            | libc::SYS_sched_get_priority_min
            | libc::SYS_sched_setaffinity
            | libc::SYS_setrlimit
            | libc::SYS_set_tid_address
            | libc::SYS_set_robust_list
            | libc::SYS_unshare
            | libc::SYS_setns
            | libc::SYS_kcmp
            | libc::SYS_membarrier
            | libc::SYS_landlock_create_ruleset
            | libc::SYS_landlock_add_rule
            | libc::SYS_landlock_restrict_self
            | libc::SYS_futex_waitv
            | libc::SYS_process_mrelease
            | libc::SYS_process_madvise
            | libc::SYS_add_key
            | libc::SYS_request_key
    ) || NEWER_FUTEX.contains(&number)
}

fn of_the_rest(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_mremap
            | libc::SYS_brk
            | libc::SYS_madvise
            | libc::SYS_msync
            | libc::SYS_mlock
            | libc::SYS_mlock2
            | libc::SYS_munlock
            | libc::SYS_mlockall
            | libc::SYS_munlockall
            | libc::SYS_remap_file_pages
            | libc::SYS_pkey_mprotect
            | libc::SYS_pkey_alloc
            | libc::SYS_pkey_free
            | libc::SYS_mseal
            | libc::SYS_mbind
            | libc::SYS_set_mempolicy
            | libc::SYS_set_mempolicy_home_node
            | libc::SYS_migrate_pages
            | libc::SYS_shmget
            | libc::SYS_shmat
            | libc::SYS_shmdt
            | libc::SYS_semget
            | libc::SYS_semop
            | libc::SYS_semtimedop
            | libc::SYS_msgget
            | libc::SYS_msgsnd
            | libc::SYS_mq_open
            | libc::SYS_mq_unlink
            | libc::SYS_mq_timedsend
            | libc::SYS_mq_notify
            | libc::SYS_timer_delete
            | libc::SYS_timer_getoverrun
            | libc::SYS_clock_settime
            | libc::SYS_settimeofday
            | libc::SYS_acct
            | libc::SYS_swapon
            | libc::SYS_swapoff
            | libc::SYS_reboot
            | libc::SYS_sethostname
            | libc::SYS_setdomainname
            | libc::SYS_iopl
            | libc::SYS_ioperm
            | libc::SYS_init_module
            | libc::SYS_finit_module
            | libc::SYS_delete_module
            | libc::SYS_kexec_load
            | libc::SYS_kexec_file_load
            | libc::SYS_vhangup
    )
}
