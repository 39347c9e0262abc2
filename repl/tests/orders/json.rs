//! The replies of the other files, as JSON.

use expect_test::expect;

use super::common::Folder;

#[test]
fn replies_have_json() {
    let folder = Folder::with_frozen(&["orders"]);
    let run = |lines: &[&str]| {
        let mut args = vec!["repl", "orders", "--json"];
        for line in lines {
            args.extend(["--cmd", line]);
        }
        folder.transcript(&args)
    };
    expect![[r#"
        {
          "id": 1,
          "result": {
            "recording": "orders.hindsight",
            "session": 0,
            "status": "stopped",
            "stop": {
              "address": "0x55a57873f519",
              "column": 3,
              "file": "/home/ada/orders/orders.c",
              "function": "main",
              "line": 70,
              "number": 28,
              "reason": "event",
              "seq": 28,
              "source_line": "  settle(second);",
              "thread": 28464,
              "thread_name": "orders",
              "what": "return from settle"
            },
            "timed_out": false
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "address": "0x55a578742070",
            "expression": "sold",
            "number": 1,
            "stale_since": 18,
            "type": "int",
            "value": "0 <stale: as of event 18>"
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "frame": 0,
            "registers": [
              {
                "name": "rax",
                "value": "0x4"
              },
              {
                "name": "rbx",
                "stale_since": 19,
                "value": "0x7fff2dc3de18"
              }
            ]
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "address": "0x55a578742070",
            "bytes": "00000000",
            "stale_since": 18
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "calls": [
              {
                "around": true,
                "depth": 0,
                "dur_ns": 288386274,
                "end_seq": 68,
                "function": "main",
                "start_seq": 12,
                "unwound": true
              },
              {
                "around": false,
                "depth": 1,
                "dur_ns": 3746,
                "end_seq": 14,
                "function": "ordered",
                "start_seq": 13,
                "unwound": false
              }
            ],
            "more": true,
            "seq": 28,
            "thread": 28464
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "changes": [
              {
                "seq": 4,
                "thread": 28464,
                "value": "0"
              },
              {
                "function": "main",
                "old": "0",
                "seq": 29,
                "thread": 28464,
                "value": "4"
              },
              {
                "function": "settle",
                "old": "4",
                "seq": 65,
                "thread": 28464,
                "value": "46"
              }
            ],
            "expression": "sold",
            "hint": "hindsight record --log-writes 'sold' /home/ada/orders/./orders",
            "known_at": 14
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "after": {
              "seq": 4,
              "thread": 28464,
              "value": "0"
            },
            "expression": "sold",
            "hint": "hindsight record --log-writes 'sold' /home/ada/orders/./orders",
            "later": {
              "last": {
                "function": "settle",
                "old": "4",
                "seq": 65,
                "thread": 28464,
                "value": "46"
              },
              "up_to": 28
            },
            "now": {
              "address": "0x55a578742070",
              "stale_since": 18,
              "value": "0 <stale: as of event 18>"
            },
            "seen_at": 20
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "lines": [
              {
                "line": 1,
                "seq": 26,
                "stream": "stdout",
                "text": "order 1 for Ada: 17.00"
              }
            ],
            "more": false
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "notes": [
              {
                "seq": 21,
                "text": "the first is settled"
              }
            ]
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "frame": 0,
            "function": "main",
            "variables": [
              {
                "address": "0x7fff2dc3dce4",
                "is_parameter": false,
                "line": 66,
                "name": "counts",
                "shadowed": false,
                "stale_since": 19,
                "type": "int [3]",
                "value": "{2, 0, 1} <stale: as of event 19>"
              },
              {
                "address": "0x7fff2dc3dcf8",
                "is_parameter": false,
                "line": 67,
                "name": "first",
                "shadowed": false,
                "stale_since": 19,
                "type": "struct order *",
                "value": "0x55a5866573d0 <stale: as of event 19>"
              },
              {
                "address": "0x7fff2dc3dcf0",
                "is_parameter": false,
                "line": 68,
                "name": "second",
                "shadowed": false,
                "stale_since": 19,
                "type": "struct order *",
                "value": "0x55a5866573f0 <stale: as of event 19>"
              },
              {
                "address": "0x7fff2dc3dcd8",
                "is_parameter": false,
                "line": 73,
                "name": "thread",
                "shadowed": false,
                "stale_since": 19,
                "type": "pthread_t",
                "value": "140733961199128 <stale: as of event 19>"
              }
            ]
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "threads": [
              {
                "frames": [
                  {
                    "address": "0x55a57873f519",
                    "args": [],
                    "column": 3,
                    "file": "/home/ada/orders/orders.c",
                    "function": "main",
                    "index": 0,
                    "inlined": false,
                    "is_signal": false,
                    "is_tail_call": false,
                    "line": 70,
                    "module": "orders.hindsight/modules/000000/orders",
                    "offset": 117,
                    "selected": true
                  }
                ],
                "more": true,
                "thread": 28464
              }
            ]
          },
          "success": true
        }
    "#]]
    .assert_eq(&run(&[
        "goto 28",
        "print sold",
        "registers rax rbx",
        "memory read &sold --count 4",
        "calls --limit 1",
        "history sold",
        "last-write sold",
        "output --tail 1",
        "notes",
        "locals",
        "backtrace --limit 1",
    ]));
}
