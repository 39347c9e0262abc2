//! Goal: output is never shown twice, reordered or lost silently. Method: small buffers, filled by hand.

use super::*;

fn buffer(max_events: usize, max_bytes: usize) -> Arc<Output> {
    Output::new(OutputLimits {
        max_events,
        max_bytes_mb: max_bytes as f64 / f64::from(1 << 20),
    })
}

fn text(fetched: &Fetched) -> String {
    let bytes: Vec<u8> = fetched
        .pieces
        .iter()
        .flat_map(|p| p.bytes.clone())
        .collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn taking_returns_everything_once() {
    let output = buffer(10, 1000);
    output.push(Stream::Stdout, b"a\n");
    output.push(Stream::Stderr, b"b\n");
    let taken = output.take();
    assert_eq!(text(&taken), "a\nb\n");
    assert_eq!(taken.pieces[1].stream, Stream::Stderr);
    assert_eq!(taken.dropped, 0);
    assert_eq!(text(&output.take()), "");
    output.push(Stream::Stdout, b"c");
    assert_eq!(text(&output.take()), "c");
}

#[test]
fn the_oldest_piece_goes_first_and_is_counted() {
    let by_number = buffer(2, 1000);
    for word in [b"1", b"2", b"3", b"4"] {
        by_number.push(Stream::Stdout, word);
    }
    let taken = by_number.take();
    assert_eq!((text(&taken).as_str(), taken.dropped), ("34", 2));
    let by_bytes = buffer(10, 4);
    for word in [&b"aaa"[..], b"bb", b"cc"] {
        by_bytes.push(Stream::Stdout, word);
    }
    let taken = by_bytes.take();
    assert_eq!((text(&taken).as_str(), taken.dropped), ("bbcc", 1));
}

#[test]
fn a_piece_greater_than_the_buffer_is_dropped_and_counted() {
    let output = buffer(10, 4);
    output.push(Stream::Stdout, b"far too long");
    let taken = output.take();
    assert_eq!((text(&taken).as_str(), taken.dropped), ("", 1));
}

#[test]
fn following_forgets_nothing_and_begins_where_it_is_told() {
    let output = buffer(10, 1000);
    output.push(Stream::Stdout, b"a");
    output.push(Stream::Stdout, b"b");
    let followed = output.follow(1, Duration::ZERO, &|| false);
    assert_eq!((text(&followed).as_str(), followed.next), ("b", 2));
    assert!(followed.ended, "nothing feeds it");
    assert_eq!(text(&output.take()), "ab");
}

#[test]
fn a_follower_wakes_when_something_is_printed_and_at_the_end() {
    let output = buffer(10, 1000);
    let (reader, mut writer) = std::io::pipe().unwrap();
    output.feed(Stream::Stdout, reader);
    let follower = std::thread::spawn({
        let output = Arc::clone(&output);
        move || {
            let mut seen = String::new();
            let mut next = 0;
            loop {
                let fetched = output.follow(next, Duration::from_secs(600), &|| false);
                seen += &text(&fetched);
                next = fetched.next;
                if fetched.ended && fetched.pieces.is_empty() {
                    return seen;
                }
            }
        }
    });
    std::io::Write::write_all(&mut writer, b"one\ntwo\n").unwrap();
    drop(writer);
    assert_eq!(follower.join().unwrap(), "one\ntwo\n");
}

#[test]
fn what_comes_late_is_there_after_the_end() {
    let output = buffer(10, 1000);
    let (reader, mut writer) = std::io::pipe().unwrap();
    output.feed(Stream::Stdout, reader);
    std::thread::spawn(move || std::io::Write::write_all(&mut writer, b"last words\n").unwrap());
    output.wait_for_end(Duration::from_secs(600));
    assert_eq!(text(&output.take()), "last words\n");
}

#[test]
fn the_tail_is_of_lines_across_pieces() {
    let output = buffer(10, 1000);
    output.push(Stream::Stdout, b"one\nt");
    output.push(Stream::Stderr, b"wo\nthree\nfo");
    output.push(Stream::Stdout, b"ur");
    let tail = |lines| text(&output.tail(lines));
    assert_eq!(tail(0), "");
    assert_eq!(tail(1), "four");
    assert_eq!(tail(2), "three\nfour");
    assert_eq!(tail(3), "two\nthree\nfour");
    assert_eq!(tail(4), "one\ntwo\nthree\nfour");
    assert_eq!(tail(99), "one\ntwo\nthree\nfour");
    output.push(Stream::Stdout, b"\n");
    assert_eq!(tail(1), "four\n");
    assert_eq!(output.clear(), 4);
    assert_eq!(tail(5), "");
}
