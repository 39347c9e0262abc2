//! `hindsight info`: the contents of a recording.

use expect_test::expect;
use store::control::Control;
use store::synth::Synth;

use super::check;
use super::common::Folder;

#[test]
fn info_tells_of_a_closed_recording() {
    check(
        &Folder::with_shop(),
        &["info", "shop"],
        expect![[r#"
            recording  shop.hindsight (closed cleanly)
            program    ./shop
            folder     /home/ada/shop
            started    2026-11-21T07:03:53Z
            lasted     2.9 ms
            ended      with exit code 3
            on         Linux 6.18.44-fc-v669, AMD EPYC
            made by    hindsight 0.1.0, Frida 17.25.2, format 1
            settings   all functions; block when full

            rows       68 calls, 153 events, 7 functions, 6 modules, 2 threads, 6 output, 0 gaps, 7 probes, 0 notes
            lost       nothing
            on disk    13.4 kB (columns 13.0 kB), 197.3 B/call

            modules    /home/ada/shop/shop: 7 functions, build id fe4c0bbbdd8272646f466234c1b6ca9ac32b6b77
                       and 5 more; see the table modules
        "#]],
    );
}

#[test]
fn info_tells_the_same_as_json() {
    check(
        &Folder::with_shop(),
        &["info", "shop", "--json"],
        expect![[r#"
            {
              "id": 1,
              "result": {
                "argv": [
                  "./shop"
                ],
                "bytes_on_disk": {
                  "columns": 13030,
                  "log": 0,
                  "total": 13414
                },
                "cwd": "/home/ada/shop",
                "detached": false,
                "duration_ns": 2860802,
                "exit_code": 3,
                "exit_signal": null,
                "format_version": 1,
                "frida_version": "17.25.2",
                "hindsight_version": "0.1.0",
                "host": {
                  "cpu": "AMD EPYC",
                  "kernel": "Linux 6.18.44-fc-v669",
                  "name": null
                },
                "id": "ed0925ccbbde51cff462410ccd1c44de",
                "labels": {},
                "lost": 0,
                "modules": [
                  {
                    "build_id": "fe4c0bbbdd8272646f466234c1b6ca9ac32b6b77",
                    "functions": 7,
                    "name": "shop",
                    "path": "/home/ada/shop/shop",
                    "system": false
                  },
                  {
                    "build_id": "93ac61ec5a8eb1396f9fbd350e3169a558528a40",
                    "functions": 0,
                    "name": "libc.so.6",
                    "path": "/usr/lib/x86_64-linux-gnu/libc.so.6",
                    "system": true
                  },
                  {
                    "build_id": "289ee39f8c07bd4fa48102dfeeb7e6f9c76158b4",
                    "functions": 0,
                    "name": "libstdc++.so.6.0.30",
                    "path": "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
                    "system": true
                  },
                  {
                    "build_id": "d6e6f9e3af1243eed9bf5efd366dd015a9f22c13",
                    "functions": 0,
                    "name": "libm.so.6",
                    "path": "/usr/lib/x86_64-linux-gnu/libm.so.6",
                    "system": true
                  },
                  {
                    "build_id": "6f03384c2e3c38887dd3ba5a24b2e18c17e2f0e0",
                    "functions": 0,
                    "name": "libgcc_s.so.1",
                    "path": "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
                    "system": true
                  },
                  {
                    "build_id": "7ebc65e52f2bbea498b4040fa92f7238377aaba9",
                    "functions": 0,
                    "name": "ld-linux-x86-64.so.2",
                    "path": "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                    "system": true
                  }
                ],
                "recording": "shop.hindsight",
                "rows": {
                  "calls": 68,
                  "events": 153,
                  "exceptions": 0,
                  "files": 0,
                  "functions": 7,
                  "gaps": 0,
                  "logpoints": 0,
                  "modules": 6,
                  "notes": 0,
                  "output": 6,
                  "pauses": 0,
                  "probes": 7,
                  "processes": 1,
                  "syscalls": 0,
                  "threads": 2,
                  "writes": 0
                },
                "settings": {
                  "captures": [],
                  "filters": [],
                  "keep_log": false,
                  "log_writes": [],
                  "no_aslr": false,
                  "on_full": "block"
                },
                "start": "2026-11-21T07:03:53Z",
                "start_unix_ns": 1795244633866551897,
                "state": "closed",
                "torn_bytes": 0,
                "tsc_hz": 2596130184.9232364,
                "unfinished_calls": 0
              },
              "success": true
            }
        "#]],
    );
}

#[test]
fn info_tells_of_losses_and_of_an_incomplete_recording() {
    check(
        &Folder::with_interrupted_app(),
        &["info", "app"],
        expect![[r#"
            recording  app.hindsight (incomplete: its recorder did not close it)
            program    synth
            folder     /
            started    2023-11-14T22:13:20Z
            lasted     5.0 ms
            ended      with exit code 3
            made by    hindsight 0.0.0, format 2
            settings   all functions; block when full

            rows       8 calls, 26 events, 3 functions, 2 modules, 2 threads, 2 output, 1 gap, 4 probes, 0 notes
            lost       17 events in 1 gap
            on disk    2.3 kB (log 1.4 kB), 292.0 B/call

            modules    /home/me/app: 3 functions, build id 5d1f0c3a
                       and 1 more; see the table modules
        "#]],
    );
}

#[test]
fn info_tells_of_a_recording_without_calls() {
    let folder = Folder::empty();
    let mut synth = Synth::new();
    synth.control(Control::ModuleLoad {
        ticks: 0,
        module: 0,
        path: "/home/me/app".into(),
        build_id: None,
        addr: 0x40_0000,
        size: 0x8000,
        system: false,
    });
    synth
        .record_interrupted(&folder.path("bare.hindsight"))
        .unwrap();
    check(
        &folder,
        &["info", "bare"],
        expect![[r#"
            recording  bare.hindsight (incomplete: its recorder did not close it)
            program    synth
            folder     /
            started    2023-11-14T22:13:20Z
            lasted     0 ns
            ended      after the end of the recording
            made by    hindsight 0.0.0, format 2
            settings   all functions; block when full

            rows       0 calls, 1 event, 0 functions, 1 module, 0 threads, 0 output, 0 gaps, 0 probes, 0 notes
            lost       nothing
            on disk    1.0 kB (log 128 B)

            modules    1; see the table modules
        "#]],
    );
}
