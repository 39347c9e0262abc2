//! Goal: each call of the kernel's table has as many arguments as in strace, with the same numbers; texts and flags are shown where
//! strace shows them. Method: a program that makes all calls in a sandbox that refuses them, and one whose calls fail by
//! themselves; both under strace and recorded.

use std::collections::BTreeMap;
use std::fs;

use e2e::{Hindsight, Program, Scratch, compiled};

use super::arguments::{masked, separated};
use super::beside_strace::{Call, compared, recorded, traced};

/// Makes all calls with the same six numbers, which a filter knows: none of the calls is carried out.
const ALL: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define ARGUMENT(n) offsetof(struct seccomp_data, args[n])
int main(void)
{
  struct sock_filter steps[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(0)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 101, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(5)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 106, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = { sizeof steps / sizeof steps[0], steps };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
    return 1;
  for (long number = 0; number <= 450; number++)
    if (number <= 334 || number >= 424)
      syscall(number, 101, 102, 103, 104, 105, 106);
  return 0;
}
"#;
/// The runtime replaces them (docs/limits.md).
const REPLACED: [&str; 3] = ["getrlimit", "prlimit64", "setrlimit"];
/// strace writes these in its own way: in another order, or from the memory that they use.
const IN_OTHER_WORDS: [&str; 3] = ["clone", "restart_syscall", "rt_sigreturn"];

/// The last call of each name.
fn by_name(calls: Vec<Call>) -> BTreeMap<String, String> {
    let calls = calls.into_iter().map(|call| (call.name, call.args));
    calls.collect()
}

/// Is it a number, and neither flags nor one that strace has no name for?
fn is_plain(arg: &str) -> bool {
    let digits = arg.strip_prefix("0x").unwrap_or(arg);
    !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit())
}

#[test]
fn every_call_has_its_arguments() {
    let scratch = Scratch::new("each_call");
    let program = compiled(&scratch, "all.c", ALL, &[]);
    let folder = scratch.join("traced");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let expected = by_name(traced(&folder, &program, &[]).swap_remove(0));
    let run = Program::new(&program, scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &["--syscalls"], &run);
    let found = by_name(recorded(&recording).swap_remove(0));
    let missing: Vec<&str> = expected
        .keys()
        .map(String::as_str)
        .filter(|name| !found.contains_key(*name))
        .collect();
    assert_eq!(missing, REPLACED);
    for (name, args) in &expected {
        if REPLACED.contains(&name.as_str()) || IN_OTHER_WORDS.contains(&name.as_str()) {
            continue;
        }
        let (wanted, got) = (separated(args), separated(&found[name]));
        assert_eq!(got.len(), wanted.len(), "{name}({args}): {got:?}");
        for (wanted, got) in wanted.iter().zip(&got) {
            if is_plain(wanted) {
                assert_eq!(got, wanted, "{name}({args})");
            }
        }
    }
}

/// Calls that fail or change nothing: there are no such files, descriptors and numbers.
const FAILING: &str = r#"
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#define CALL(name, ...) syscall(SYS_##name, __VA_ARGS__)
#define NO 0L
int main(void)
{
  struct iovec buffers[] = { { 0, 0 }, { "x", 0 } };
  int one, other, third;
  char value[8];
  CALL(faccessat2, AT_FDCWD, "none", 4, 0x200);
  CALL(faccessat2, AT_FDCWD, "none", 4, 0x300);
  CALL(unlinkat, AT_FDCWD, "none", 0x200);
  CALL(name_to_handle_at, AT_FDCWD, "none", NO, NO, 0x400);
  CALL(fchownat, AT_FDCWD, "none", -1, 5, 0x100);
  CALL(umount2, "none", 2);
  CALL(mount, "a", "none", "c", 1, "d");
  CALL(acct, "none/file");
  CALL(swapon, "none", 0x18005);
  CALL(swapoff, "none");
  CALL(chroot, "none");
  CALL(pivot_root, "none", "nothing");
  CALL(uselib, "none");
  CALL(quotactl, 0x80000700, "none", 0, NO);
  CALL(fanotify_mark, -1, 1, 2, AT_FDCWD, "none");
  CALL(open_tree, AT_FDCWD, "none", 0x80001);
  CALL(move_mount, AT_FDCWD, "none", AT_FDCWD, "nothing", 0x11);
  CALL(fsopen, "none", 1);
  CALL(fspick, AT_FDCWD, "none", 1);
  CALL(fsconfig, -1, 1, "key", "value", 0);
  CALL(fsconfig, -1, 2, "key", "a\0b\1", 4);
  CALL(fsmount, -1, 1, 1);
  CALL(mount_setattr, AT_FDCWD, "none", 0x8000, NO, NO);
  CALL(setxattr, "none", "user.a", "va", 2L, 1);
  CALL(getxattr, "none", "user.a", value, 8L);
  CALL(listxattr, "none", NO, NO);
  CALL(removexattr, "none", "user.a");
  CALL(lremovexattr, "none", "user.a");
  CALL(fremovexattr, -1, "user.a");
  CALL(utime, "none", NO);
  CALL(mknod, "none/file", 0010600, 0);
  CALL(mknodat, AT_FDCWD, "none/file", 0020600, 0x103);
  CALL(mq_open, "none", 0);
  CALL(mq_unlink, "none");
  CALL(finit_module, -1, "none", 3);
  CALL(delete_module, "none", 0x800);
  CALL(add_key, "none", "name", "text", 4L, 5);
  CALL(keyctl, 3, 5);
  CALL(fallocate, -1, 3, 5L, 1L << 32);
  CALL(wait4, -1, NO, 0xe0000001, NO);
  CALL(writev, 1, buffers, 2L);
  CALL(vmsplice, -1, buffers, 2L, 8);
  CALL(write, -1, NO, NO);
  CALL(lseek, -1, 3000000000L, 0);
  CALL(readahead, -1, 3000000000L, 5L);
  CALL(pwritev2, -1, buffers, 2L, 3000000000L, NO, 2);
  CALL(inotify_rm_watch, -1, 99);
  CALL(tee, -1, -1, 5L, 2);
  CALL(sendmmsg, -1, NO, 1, 0x4000);
  CALL(recvmmsg, -1, NO, 1, 0x40, NO);
  CALL(mlock, NO, NO);
  CALL(munlock, NO, NO);
  CALL(sched_getscheduler, 0);
  CALL(sched_getparam, 0, &one);
  CALL(setreuid, -1, -1);
  CALL(getresuid, &one, &other, &third);
  CALL(tkill, -1, 9);
  CALL(tkill, -1, 70);
  CALL(setns, -1, 0x20000);
  CALL(personality, 0xffffffff);
  CALL(kcmp, -1, -1, 1, NO, NO);
  CALL(process_vm_readv, -1, NO, NO, NO, NO, NO);
  CALL(timer_settime, -1, 1, NO, NO);
  CALL(timer_delete, -1);
  CALL(shmget, 0x7f001234, 4096L, 0600);
  CALL(semget, 0x7f001234, 1, 0600);
  CALL(msgget, 0x7f001234, 0600);
  CALL(shmctl, -1, 0, NO);
  CALL(semctl, -1, 0, 0, NO);
  CALL(msgctl, -1, 0, NO);
  long blocked = 1L << 9 | 1L << 33, nothing[2] = { 0, 0 }, events[4];
  struct open_how beneath = { 0, 0, 8 }, making = { O_WRONLY | O_CREAT, 0644, 0x27 };
  struct sockaddr_in6 to = { AF_INET6, htons(9), htonl(5), IN6ADDR_LOOPBACK_INIT, 7 };
  int set = CALL(epoll_create1, 0);
  CALL(ppoll, NO, 0, nothing, &blocked, 8L);
  CALL(epoll_pwait, set, events, 1, 0, &blocked, 8L);
  CALL(epoll_pwait2, set, events, 1, nothing, &blocked, 8L);
  CALL(openat2, AT_FDCWD, "none", &beneath, 24L);
  CALL(openat2, AT_FDCWD, "none/file", &making, 24L);
  CALL(bind, -1, &to, 28);
  CALL(sendto, -1, "x", 1L, 0, &to, 24);
  CALL(io_uring_enter, -1, 1, 0, 3, NO, NO);
  CALL(landlock_create_ruleset, NO, NO, 1);
  return 0;
}
"#;

#[test]
fn texts_and_flags_are_those_of_strace() {
    let scratch = Scratch::new("failing_calls");
    let program = compiled(&scratch, "failing.c", FAILING, &["-w"]);
    let (expected, found) = compared(program.to_str().expect("its name is text"), &[]);
    let begins = |call: &Call| call.name == "faccessat2";
    let from = expected.iter().position(begins).expect("it begins so");
    assert!(expected.len() > from + 60, "{}", expected.len());
    for (wanted, got) in expected.iter().zip(&found).skip(from) {
        let wanted_args = wanted.args.replace("/native/x", "/record/x");
        assert_eq!(masked(&got.args), masked(&wanted_args), "{}", wanted.name);
    }
}
