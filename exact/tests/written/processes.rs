//! Processes, threads, users, signals, locks, memory, and what is shared between processes.

use crate::region::Region;

/// A child that ends at once.
fn child() -> u64 {
    // SAFETY: the child does nothing but end.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(3),
            child => child as u64,
        }
    }
}

#[test]
fn children_that_ended() {
    let region = Region::new();
    let (status, info, usage) = (region.room(4), region.room(128), region.room(144));
    let none = libc::WNOHANG as u64;
    region.ok(libc::SYS_wait4, &[child(), status, 0, usage], 4 + 144);
    region.ok(libc::SYS_wait4, &[child(), status, 0, 0], 4);
    let pid = libc::P_PID as u64;
    let ended = libc::WEXITED as u64;
    let args = [pid, child(), info, ended, usage];
    region.ok(libc::SYS_waitid, &args, 24 + 144);
    // The fields are written also when there is nobody.
    region.fails(libc::SYS_waitid, &args, libc::ECHILD, 24);
    region.fails(
        libc::SYS_wait4,
        &[args[1], status, none, usage],
        libc::ECHILD,
        0,
    );
    let sleeper = std::process::Command::new("sleep").arg("60").spawn();
    let mut sleeper = sleeper.unwrap();
    let id = u64::from(sleeper.id());
    region.ok(libc::SYS_wait4, &[id, status, none, usage], 0);
    region.ok(libc::SYS_waitid, &[pid, id, info, ended | none, 0], 24);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

/// A call that makes a process; the child ends at once.
fn starts(region: &Region, number: i64, args: &[u64], bytes: u64) {
    let (result, claimed) = region.call(number, args);
    if result == 0 {
        // SAFETY: this is the child.
        unsafe { libc::_exit(0) };
    }
    assert!(result > 0, "{number}: {result}");
    // SAFETY: it waits for the child.
    unsafe { libc::waitpid(result as i32, std::ptr::null_mut(), 0) };
    assert_eq!(claimed, Some(bytes), "{number} {args:x?}");
}

#[test]
fn children_that_start() {
    let region = Region::new();
    let (parent, child, fd) = (region.room(4), region.room(4), region.room(4));
    let plain = libc::SIGCHLD as u64;
    let [tells, tells_child, gives_fd] = [
        libc::CLONE_PARENT_SETTID,
        libc::CLONE_CHILD_SETTID,
        libc::CLONE_PIDFD,
    ]
    .map(|flag| flag as u64);
    starts(&region, libc::SYS_fork, &[], 0);
    starts(&region, libc::SYS_clone, &[plain, 0, parent, child, 0], 0);
    let args = [plain | tells | tells_child, 0, parent, child, 0];
    starts(&region, libc::SYS_clone, &args, 4);
    starts(
        &region,
        libc::SYS_clone,
        &[plain | gives_fd, 0, fd, 0, 0],
        4,
    );
    let flags = tells | tells_child | gives_fd;
    let structure = region.put_words(&[flags, fd, child, parent, plain, 0, 0, 0, 0, 0, 0]);
    starts(&region, libc::SYS_clone3, &[structure, 88], 8);
    let wrong = region.put_words(&[u64::MAX, fd, child, parent, plain, 0, 0, 0, 0, 0, 0]);
    let (result, claimed) = region.call(libc::SYS_clone3, &[wrong, 88]);
    assert!(result < 0 && claimed.is_some());
    region.fails(
        libc::SYS_execve,
        &[region.text("/none"), 0, 0],
        libc::ENOENT,
        0,
    );
}

#[test]
fn users_and_limits() {
    let region = Region::new();
    let (one, two, three) = (region.room(512), region.room(512), region.room(512));
    region.ok(libc::SYS_uname, &[one], 390);
    region.ok(libc::SYS_getresuid, &[one, two, three], 12);
    region.ok(libc::SYS_getresgid, &[one, two, three], 12);
    let (count, _) = region.call(libc::SYS_getgroups, &[0, one]);
    region.ok(libc::SYS_getgroups, &[100, one], 4 * count as u64);
    region.ok(libc::SYS_getgroups, &[0, one], 0);
    region.ok(libc::SYS_getrlimit, &[7, one], 16);
    region.ok(libc::SYS_prlimit64, &[0, 7, 0, one], 16);
    region.ok(libc::SYS_prlimit64, &[0, 7, 0, 0], 0);
    region.fails(libc::SYS_getrlimit, &[99, one], libc::EINVAL, 0);
    for (version, bytes) in [(0x1998_0330, 12), (0x2008_0522, 24)] {
        let header = region.put_words(&[version]);
        region.ok(libc::SYS_capget, &[header, one], 4 + bytes);
    }
    let header = region.put_words(&[5]);
    region.fails(libc::SYS_capget, &[header, one], libc::EINVAL, 4);
    let header = region.put_words(&[5]);
    region.fails(libc::SYS_capset, &[header, one], libc::EINVAL, 4);
    let header = region.put_words(&[0x2008_0522, 0, 0, 0]);
    region.ok(libc::SYS_capget, &[header, 0], 4);
    region.ok(libc::SYS_getcpu, &[one, two, 0], 8);
    region.ok(libc::SYS_getrandom, &[one, 77, 0], 77);
    region.fails(libc::SYS_getrandom, &[one, 77, 99], libc::EINVAL, 0);
}

#[test]
fn scheduling() {
    let region = Region::new();
    let to = region.room(4096);
    let mask = region.call(libc::SYS_sched_getaffinity, &[0, 4096, to]);
    assert!(mask.0 > 0 && mask.1 == Some(mask.0 as u64));
    region.fails(libc::SYS_sched_getaffinity, &[0, 1, to], libc::EINVAL, 0);
    region.ok(libc::SYS_sched_getparam, &[0, to], 4);
    region.ok(libc::SYS_sched_rr_get_interval, &[0, to], 16);
    region.ok(libc::SYS_sched_getattr, &[0, to, 48, 0], 48);
    region.ok(libc::SYS_sched_getattr, &[0, to, 100, 0], 100);
    let large = region.put_words(&[
        200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    ]);
    region.fails(libc::SYS_sched_setattr, &[0, large, 0], libc::E2BIG, 4);
    // perf_event_open: the length is the second number.
    let large = region.put_words(&[4096 << 32]);
    region.put_at(large + 8, &[1; 64]);
    let room = region.room(4096);
    assert!(room > large);
    let (result, claimed) = region.call(libc::SYS_perf_event_open, &[large, 0, 0, 0, 0]);
    let expected = if result == -i64::from(libc::E2BIG) {
        4
    } else {
        0
    };
    assert_eq!(claimed, Some(expected), "{result}");
}

#[test]
fn signals() {
    let region = Region::new();
    let to = region.room(256);
    let winch = libc::SIGWINCH as u64;
    region.ok(libc::SYS_rt_sigaction, &[winch, 0, to, 8], 32);
    region.ok(libc::SYS_rt_sigaction, &[winch, 0, 0, 8], 0);
    region.fails(libc::SYS_rt_sigaction, &[winch, 0, to, 9], libc::EINVAL, 0);
    let set = region.put_words(&[1 << (libc::SIGUSR2 - 1)]);
    region.ok(libc::SYS_rt_sigprocmask, &[0, set, to, 8], 8);
    region.fails(libc::SYS_rt_sigprocmask, &[9, set, to, 8], libc::EINVAL, 0);
    region.ok(libc::SYS_rt_sigpending, &[to, 8], 8);
    region.ok(libc::SYS_rt_sigpending, &[to, 3], 3);
    let now = region.put_words(&[0, 0]);
    region.fails(
        libc::SYS_rt_sigtimedwait,
        &[set, to, now, 8],
        libc::EAGAIN,
        0,
    );
    // SAFETY: the signal is held back for this thread.
    unsafe {
        libc::syscall(
            libc::SYS_tgkill,
            libc::getpid(),
            libc::gettid(),
            libc::SIGUSR2,
        )
    };
    region.ok(libc::SYS_rt_sigtimedwait, &[set, to, now, 8], 128);
    region.ok(libc::SYS_sigaltstack, &[0, to], 24);
    let fd = region.ok(libc::SYS_signalfd4, &[u64::MAX, set, 8, 0], 0);
    // SAFETY: as above.
    unsafe {
        libc::syscall(
            libc::SYS_tgkill,
            libc::getpid(),
            libc::gettid(),
            libc::SIGUSR2,
        )
    };
    region.ok(libc::SYS_read, &[fd, to, 128], 128);
}

#[test]
fn controls_of_processes() {
    let region = Region::new();
    let (to, other) = (region.room(1024), region.room(64));
    for (option, bytes) in [(2, 4), (3, 0), (16, 16), (25, 4), (37, 4), (30, 0)] {
        region.ok(libc::SYS_prctl, &[option, to, 0, 0, 0], bytes);
    }
    region.ok(libc::SYS_prctl, &[39], 0);
    let name = region.text("a name");
    region.ok(libc::SYS_prctl, &[15, name], 0);
    region.fails(libc::SYS_prctl, &[7777, to], libc::EINVAL, 0);
    let (result, claimed) = region.call(libc::SYS_prctl, &[40, to]);
    assert_eq!(claimed, Some(if result == 0 { 8 } else { 0 }));
    let (result, claimed) = region.call(libc::SYS_prctl, &[0x4155_5856, to, 100, 0, 0]);
    assert_eq!(claimed, Some(if result > 0 { 100 } else { 0 }));
    region.ok(libc::SYS_arch_prctl, &[0x1003, to], 8);
    region.ok(libc::SYS_arch_prctl, &[0x1004, to], 8);
    region.ok(libc::SYS_arch_prctl, &[0x1011, to], 0);
    region.fails(libc::SYS_arch_prctl, &[0x9999, to], libc::EINVAL, 0);
    for code in [0x1021, 0x1022] {
        let (result, claimed) = region.call(libc::SYS_arch_prctl, &[code, to]);
        assert_eq!(claimed, Some(if result == 0 { 8 } else { 0 }));
    }
    region.ok(libc::SYS_seccomp, &[3, 0, to], 6);
    region.ok(libc::SYS_get_robust_list, &[0, to, other], 16);
    let args = [99_999_999, to, other];
    region.fails(libc::SYS_get_robust_list, &args, libc::ESRCH, 0);
    region.ok(libc::SYS_membarrier, &[0, 0, 0], 0);
}

#[test]
fn locks() {
    let region = Region::new();
    let (word, other) = (region.put_int(5), region.put_int(0));
    let futex = libc::SYS_futex;
    region.fails(futex, &[word, 0, 4, 0], libc::EAGAIN, 0);
    let time = region.put_words(&[0, 1000]);
    region.fails(futex, &[word, 128, 5, time], libc::ETIMEDOUT, 0);
    region.ok(futex, &[word, 1, 9], 0);
    // Adds 3 to the other word.
    region.ok(futex, &[word, 5, 1, 1, other, 1 << 28 | 3 << 12], 4);
    assert_eq!(region.int(other), 3);
    let lock = region.put_int(0);
    region.ok(futex, &[lock, 6, 0, 0], 4);
    region.fails(futex, &[lock, 6 | 128, 0, 0], libc::EDEADLK, 4);
    region.ok(futex, &[lock, 7, 0, 0], 4);
    region.ok(futex, &[lock, 8, 0, 0], 4);
    region.ok(futex, &[lock, 7, 0, 0], 4);
    region.fails(futex, &[lock, 99, 0, 0], libc::ENOSYS, 0);
}

#[test]
fn memory_and_its_places() {
    let region = Region::new();
    let to = region.room(256);
    let start = to & !0xfff;
    region.ok(libc::SYS_mincore, &[start, 3 * 4096, to], 3);
    region.ok(libc::SYS_mincore, &[start, 4097, to], 2);
    region.fails(libc::SYS_mincore, &[start + 1, 4096, to], libc::EINVAL, 0);
    region.fails(libc::SYS_mincore, &[1 << 46, 8192, to], libc::ENOMEM, 2);
    let policy = region.call(libc::SYS_get_mempolicy, &[to, to + 64, 1024, 0, 0]);
    assert_eq!(policy.1, Some(if policy.0 == 0 { 4 + 128 } else { 0 }));
    let pages = region.put_words(&[start, start + 4096]);
    let (result, claimed) = region.call(libc::SYS_move_pages, &[0, 2, pages, 0, to, 0]);
    assert!(
        result == 0 || result == -i64::from(libc::ENOSYS),
        "{result}"
    );
    assert_eq!(claimed, Some(8));
    let own = u64::from(std::process::id());
    let array = region.put_words(&[to, 30, to + 100, 40]);
    let from = region.put_words(&[pages, 50]);
    region.ok(libc::SYS_process_vm_readv, &[own, array, 2, from, 1, 0], 50);
    // It writes to this process.
    region.ok(
        libc::SYS_process_vm_writev,
        &[own, from, 1, array, 2, 0],
        50,
    );
    let (result, claimed) = region.call(libc::SYS_modify_ldt, &[2, to, 64]);
    assert!(result < 0 || claimed == Some(result as u64));
    let (_, claimed) = region.call(libc::SYS_modify_ldt, &[1, to, 5]);
    assert_eq!(claimed, Some(0));
    region.ok(libc::SYS_madvise, &[start, 0, 0], 0);
}

#[test]
fn what_processes_share() {
    let region = Region::new();
    let to = region.room(512);
    let id = region.ok(libc::SYS_shmget, &[0, 4096, 0o600], 0);
    region.ok(libc::SYS_shmctl, &[id, 2, to], 112);
    region.ok(libc::SYS_shmctl, &[0, 3, to], 72);
    region.ok(libc::SYS_shmctl, &[0, 14, to], 48);
    region.ok(libc::SYS_shmctl, &[id, 0, 0], 0);
    let id = region.ok(libc::SYS_semget, &[0, 3, 0o600], 0);
    region.ok(libc::SYS_semctl, &[id, 0, 2, to], 104);
    region.ok(libc::SYS_semctl, &[0, 0, 3, to], 40);
    region.ok(libc::SYS_semctl, &[0, 0, 19, to], 40);
    region.ok(libc::SYS_semctl, &[id, 0, 12, to], 0);
    assert_eq!(region.unknown(libc::SYS_semctl, &[id, 0, 13, to]), 0);
    region.ok(libc::SYS_semctl, &[id, 0, 0, 0], 0);
    region.fails(libc::SYS_semctl, &[id, 0, 13, to], libc::EINVAL, 0);
    let id = region.ok(libc::SYS_msgget, &[0, 0o600], 0);
    let message = region.put_words(&[1, 2, 3]);
    region.ok(libc::SYS_msgsnd, &[id, message, 13, 0], 0);
    region.ok(libc::SYS_msgctl, &[id, 2, to], 120);
    region.ok(libc::SYS_msgctl, &[0, 3, to], 32);
    region.ok(libc::SYS_msgrcv, &[id, to, 200, 0, 0], 8 + 13);
    let now = 0o4000;
    region.fails(libc::SYS_msgrcv, &[id, to, 200, 0, now], libc::ENOMSG, 0);
    region.ok(libc::SYS_msgctl, &[id, 0, 0], 0);
    let name = region.text(&format!("exact.{}", std::process::id()));
    let kind = region.put_words(&[0, 3, 64, 0, 0, 0, 0, 0]);
    let flags = (libc::O_CREAT | libc::O_RDWR | libc::O_NONBLOCK) as u64;
    let fd = region.ok(libc::SYS_mq_open, &[name, flags, 0o600, kind], 0);
    region.ok(libc::SYS_mq_unlink, &[name], 0);
    region.ok(libc::SYS_mq_timedsend, &[fd, to, 20, 1, 0], 0);
    let priority = region.room(4);
    let args = [fd, to, 64, priority, 0];
    region.ok(libc::SYS_mq_timedreceive, &args, 20 + 4);
    region.fails(libc::SYS_mq_timedreceive, &args, libc::EAGAIN, 0);
    region.ok(libc::SYS_mq_getsetattr, &[fd, 0, to], 64);
    let (result, claimed) = region.call(libc::SYS_syslog, &[3, to, 100]);
    assert_eq!(claimed, Some(result.max(0) as u64));
    region.ok(libc::SYS_ustat, &[root_device(), to], 32);
}

fn root_device() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc").unwrap().dev()
}
