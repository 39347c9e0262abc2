//! Programs as they are, and calls that signals interrupt.

use std::process::{Command, Stdio};

use crate::region::Region;
use crate::traced::{Calls, forked, program};

/// Nothing may be unknown but these.
fn nothing_is_unknown_but(calls: &Calls, numbers: &[i64]) {
    let unknown = calls.iter().filter(|(_, seen)| seen.unknown > 0);
    let mut numbers_of_them = unknown.map(|((number, result), _)| (*number, *result));
    let other = numbers_of_them.find(|(number, _)| !numbers.contains(number));
    assert_eq!(other, None, "a call is not known");
}

fn run(name: &str, args: &[&str]) -> Calls {
    let mut command = Command::new(name);
    let calls = program(command.args(args).stdout(Stdio::null()));
    assert!(calls.len() > 10, "{name}: {}", calls.len());
    nothing_is_unknown_but(&calls, &[libc::SYS_execve]);
    calls
}

#[test]
fn tools() {
    run("ls", &["-l", "/etc"]);
    run("find", &["/etc", "-maxdepth", "1", "-size", "+3"]);
    run("sort", &["/etc/passwd"]);
    run("tar", &["-cf", "/dev/null", "/etc/apt"]);
    run(
        "bash",
        &[
            "-c",
            "read a < /etc/passwd; cd /; pwd; echo $(echo in it) | cat; sleep 0.01 & wait",
        ],
    );
    run(
        "perl",
        &[
            "-e",
            "print sort keys %ENV; select undef, undef, undef, .01; print `id`",
        ],
    );
}

#[test]
fn python_at_work() {
    let script = r#"
import os, select, signal, socket, struct, fcntl, termios, time, resource, subprocess, tempfile, array
a, b = socket.socketpair()
socket.send_fds(b, [b"text"], [0, 1])
socket.recv_fds(a, 100, 5)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0))
v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v.sendto(b"x" * 300, u.getsockname())
u.recvfrom(100)
t = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(t.getsockname()); s, n = t.accept()
s.sendall(b"y" * 70000); c.recv_into(bytearray(100000)); c.getsockopt(6, 11, 100)
p = select.poll(); p.register(a); p.poll(10); select.select([a, c], [b], [], .01)
e = select.epoll(); e.register(b); e.poll(.01)
signal.signal(signal.SIGALRM, lambda *x: None); signal.setitimer(signal.ITIMER_REAL, .3, .3)
select.select([a], [], [], .7); time.sleep(.7); q = select.poll(); q.register(a, select.POLLIN); q.poll(700)
signal.setitimer(signal.ITIMER_REAL, 0)
d = tempfile.mkdtemp(); f = open(d + "/f", "wb+"); f.write(b"z" * 9999); f.flush(); os.listdir(d); os.statvfs(d); os.getcwd()
os.preadv(f.fileno(), [bytearray(10), bytearray(2000)], 50); os.pread(f.fileno(), 20000, 5); fcntl.fcntl(f, fcntl.F_GETLK, bytes(32))
m, o = os.openpty(); termios.tcgetattr(o); fcntl.ioctl(o, termios.TIOCGWINSZ, bytes(8)); os.ttyname(o)
os.getgroups(); os.getresuid(); os.uname(); os.times(); resource.getrusage(0); resource.getrlimit(7); os.sched_getaffinity(0)
x = subprocess.Popen(["true"]); os.waitpid(x.pid, 0); subprocess.run(["echo", "out"], capture_output=True); os.urandom(99)
os.remove(d + "/f"); os.rmdir(d)
"#;
    let calls = run("/usr/bin/python3", &["-I", "-S", "-c", script]);
    let is_seen = |number| calls.keys().any(|(seen, _)| *seen == number);
    for number in [
        libc::SYS_recvmsg,
        libc::SYS_recvfrom,
        libc::SYS_accept4,
        libc::SYS_pselect6,
    ] {
        assert!(is_seen(number), "{number}");
    }
    assert!(
        calls
            .keys()
            .any(|(_, result)| (-516..=-512).contains(result))
    );
}

/// The kernel writes what is left of the time before it says that the call is to be repeated.
#[test]
fn calls_that_are_interrupted() {
    extern "C" fn nothing(_: i32) {}
    let region = Region::new();
    let (time, rest) = (region.put_words(&[60, 0]), region.room(16));
    let waits_for = || region.put_words(&[60, 0]);
    let clock = region.put_words(&[0, 200_000, 0, 200_000]);
    let (set, fds) = (region.put_words(&[0]), region.put(&[0xff; 16]));
    let (lock, info) = (region.put_int(1), region.room(128));
    let waits: [(i64, [u64; 6], i64); 8] = [
        (libc::SYS_nanosleep, [time, rest, 0, 0, 0, 0], -516),
        (libc::SYS_clock_nanosleep, [1, 0, time, rest, 0, 0], -516),
        (libc::SYS_select, [1, set, 0, 0, waits_for(), 0], -514),
        (libc::SYS_pselect6, [1, set, 0, 0, waits_for(), 0], -514),
        (libc::SYS_poll, [fds, 2, 30_000, 0, 0, 0], -516),
        (libc::SYS_ppoll, [fds, 2, waits_for(), 0, 8, 0], -514),
        (libc::SYS_futex, [lock, 0, 1, time, 0, 0], -516),
        (libc::SYS_rt_sigtimedwait, [set, info, time, 8, 0, 0], -4),
    ];
    // SAFETY: system calls only, and a handler that does nothing.
    let calls = forked(time..time + 1, || unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, clock, 0);
        for (number, [a, b, c, d, e, f], _) in waits {
            libc::syscall(number, a, b, c, d, e, f);
        }
    });
    nothing_is_unknown_but(&calls, &[]);
    for (number, _, result) in waits {
        assert!(
            calls.contains_key(&(number, result)),
            "{number} with {result}"
        );
    }
}
