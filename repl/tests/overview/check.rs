//! `hindsight check` on intact and damaged recordings, with the place of the damage.

use expect_test::expect;

use super::check;
use super::common::Folder;

#[test]
fn a_whole_recording_passes_the_check() {
    let folder = Folder::with_shop();
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
            shop.hindsight: whole
              read     5 files, 13.4 kB
              columns  1 part, 68 calls (0 without an end), 17 other events, 7 functions
        "#]],
    );
    check(
        &folder,
        &["check", "shop", "--json"],
        expect![[r#"
            {
              "id": 1,
              "result": {
                "bytes": 13414,
                "columns": {
                  "calls": 68,
                  "events": 153,
                  "functions": 7,
                  "other_events": 17,
                  "parts": 1,
                  "unfinished_calls": 0
                },
                "files": 5,
                "findings": [],
                "log": {
                  "blocks": 0,
                  "controls": 0,
                  "frames": 0,
                  "lost": 0,
                  "records": 0,
                  "segments": 0,
                  "threads": 0,
                  "torn_bytes": 0,
                  "unreadable_bytes": 0,
                  "watermarks": 0
                },
                "missing_bytes": null,
                "recording": "shop.hindsight",
                "verdict": "whole"
              },
              "success": true
            }
        "#]],
    );
}

#[test]
fn an_incomplete_recording_exits_with_3() {
    let folder = Folder::with_interrupted_app();
    check(
        &folder,
        &["check", "app"],
        expect![[r#"
            app.hindsight: incomplete: the recorder did not close it; what is there is whole
              read     2 files, 1.8 kB
              log      1 segment, 11 frames, 21 records, 2 threads, 17 lost
              note: the recorder did not close the recording
            --- exit code 3
        "#]],
    );
    check(
        &folder,
        &["check", "app", "--json"],
        expect![[r#"
            {
              "id": 1,
              "result": {
                "bytes": 1824,
                "columns": {
                  "calls": 0,
                  "events": 0,
                  "functions": 0,
                  "other_events": 0,
                  "parts": 0,
                  "unfinished_calls": 0
                },
                "files": 2,
                "findings": [
                  {
                    "offset": null,
                    "path": "app.hindsight",
                    "severity": "note",
                    "what": "the recorder did not close the recording"
                  }
                ],
                "log": {
                  "blocks": 3,
                  "controls": 8,
                  "frames": 11,
                  "lost": 17,
                  "records": 21,
                  "segments": 1,
                  "threads": 2,
                  "torn_bytes": 0,
                  "unreadable_bytes": 0,
                  "watermarks": 0
                },
                "missing_bytes": null,
                "recording": "app.hindsight",
                "verdict": "incomplete"
              },
              "success": true
            }
            --- exit code 3
        "#]],
    );
}

#[test]
fn damage_in_the_columns_is_found_and_named() {
    let folder = Folder::with_shop();
    folder.damage("shop.hindsight/columns/calls-000000.parquet", 100);
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
            shop.hindsight: damaged
              read     5 files, 13.4 kB
              columns  1 part, 68 calls (0 without an end), 17 other events, 7 functions
              damage: columns/calls-000000.parquet: the file's checksum differs
            --- exit code 1
        "#]],
    );
    check(
        &folder,
        &["check", "shop", "--json"],
        expect![[r#"
            {
              "id": 1,
              "result": {
                "bytes": 13414,
                "columns": {
                  "calls": 68,
                  "events": 153,
                  "functions": 7,
                  "other_events": 17,
                  "parts": 1,
                  "unfinished_calls": 0
                },
                "files": 5,
                "findings": [
                  {
                    "offset": null,
                    "path": "shop.hindsight/columns/calls-000000.parquet",
                    "severity": "damage",
                    "what": "the file's checksum differs"
                  }
                ],
                "log": {
                  "blocks": 0,
                  "controls": 0,
                  "frames": 0,
                  "lost": 0,
                  "records": 0,
                  "segments": 0,
                  "threads": 0,
                  "torn_bytes": 0,
                  "unreadable_bytes": 0,
                  "watermarks": 0
                },
                "missing_bytes": null,
                "recording": "shop.hindsight",
                "verdict": "damaged"
              },
              "success": true
            }
            --- exit code 1
        "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
            --- stderr
            error: shop.hindsight/columns/calls-000000.parquet is damaged at offset 0: the file's checksum differs
            help: run "hindsight check" for a full report and restore the file from a copy
            --- exit code 1
        "#]],
    );
    check(
        &folder,
        &["sql", "shop", "select sum(dur_ns) from calls"],
        expect![[r#"
            --- stderr
            error: shop.hindsight/columns/calls-000000.parquet is damaged at offset 0: the file's checksum differs
            help: run "hindsight check" for a full report and restore the file from a copy
            --- exit code 1
        "#]],
    );
}

#[test]
fn damage_in_the_definitions_is_found_and_named() {
    let folder = Folder::with_shop();
    folder.damage("shop.hindsight/columns/definitions.seg", 700);
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
            shop.hindsight: damaged
              read     4 files, 11.5 kB
              columns  1 part, 68 calls (0 without an end), 17 other events, 0 functions
              damage: columns/definitions.seg at offset 632: the frame's checksum differs
            --- exit code 1
        "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
        --- stderr
        error: shop.hindsight/columns/definitions.seg is damaged at offset 632: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]],
    );
}

#[test]
fn a_damaged_manifest_is_refused() {
    let folder = Folder::with_shop();
    folder.damage("shop.hindsight/manifest", 100);
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
        shop.hindsight: damaged
          read     0 files, 0 B
          damage: manifest at offset 64: the frame's checksum differs
        --- exit code 1
    "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
        --- stderr
        error: shop.hindsight/manifest is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]],
    );
}

#[test]
fn a_missing_file_is_damage() {
    let folder = Folder::with_shop();
    std::fs::remove_file(folder.path("shop.hindsight/columns/events-000000.parquet")).unwrap();
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
            shop.hindsight: damaged
              read     4 files, 9.3 kB
              columns  1 part, 68 calls (0 without an end), 17 other events, 7 functions
              damage: columns/events-000000.parquet: open: No such file or directory
            --- exit code 1
        "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
            --- stderr
            error: shop.hindsight/columns/events-000000.parquet is damaged at offset 0: there is no such file
            help: run "hindsight check" for a full report and restore the file from a copy
            --- exit code 1
        "#]],
    );
}

#[test]
fn the_index_of_an_older_version_is_left_aside() {
    let folder = Folder::with_shop();
    let index = folder.path("shop.hindsight/catalog");
    std::fs::create_dir(&index).unwrap();
    std::fs::write(index.join("db"), b"not a recording's file").unwrap();
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
            shop.hindsight: whole
              read     5 files, 13.4 kB
              columns  1 part, 68 calls (0 without an end), 17 other events, 7 functions
        "#]],
    );
    check(
        &folder,
        &["sql", "shop", "SELECT count(*) AS calls FROM calls"],
        expect![[r#"
             calls
            -------
                68
        "#]],
    );
}
