//! Standard input and output as lines of JSON. A line that is no JSON, or no message, is answered with an error, as JSON-RPC 2.0 wants
//! (section 5.1, -32700 and -32600): a client would wait for ever for its answer.

use std::sync::Arc;

use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{
    self, AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader,
    DuplexStream, duplex,
};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

/// Bytes that wait between the protocol and the standard streams.
const ROOM: usize = 64 << 10;
/// The longest message in bytes: the protocol's library passes over longer ones in silence.
pub const LONGEST: usize = DEFAULT_MAX_LINE_LENGTH;
/// So much of a line is kept, to find out which request is too long; more is passed over.
const KEPT: usize = 4 * LONGEST;

/// What the protocol reads and writes instead of the standard streams.
pub struct Lines {
    /// What it reads.
    pub requests: DuplexStream,
    /// What it writes.
    pub answers: DuplexStream,
    /// Ends when the protocol has closed `answers`, and all of them are written.
    pub written: JoinHandle<()>,
    /// Is dropped when the client has closed its end.
    pub ended: oneshot::Receiver<()>,
}

/// Checks the lines of the standard streams.
pub fn checked() -> Lines {
    between(io::stdin(), io::stdout())
}

fn between(
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Lines {
    let (requests, to_protocol) = duplex(ROOM);
    let (from_protocol, answers) = duplex(ROOM);
    let output = Arc::new(Mutex::new(output));
    let (goes_on, ended) = oneshot::channel();
    let checked = check(input, to_protocol, Arc::clone(&output));
    tokio::spawn(async move {
        checked.await;
        drop::<oneshot::Sender<()>>(goes_on);
    });
    let written = tokio::spawn(async move {
        let mut answers = BufReader::new(from_protocol);
        let mut line = Vec::new();
        while answers
            .read_until(b'\n', &mut line)
            .await
            .is_ok_and(|read| read > 0)
        {
            if write(&output, &line).await.is_err() {
                break;
            }
            line.clear();
        }
    });
    Lines {
        requests,
        answers,
        written,
        ended,
    }
}

async fn write(output: &Mutex<impl AsyncWrite + Unpin>, line: &[u8]) -> io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(line).await?;
    output.flush().await
}

/// All that is read of a message that is too long.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Value,
}

/// Reads a line to its end, and keeps at most [`KEPT`] bytes of it. `false`: there is none.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> bool {
    line.clear();
    let mut is_begun = false;
    loop {
        let Ok(there) = input.fill_buf().await else {
            return false;
        };
        let end = there.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(there.len(), |end| end + 1);
        if taken == 0 {
            return is_begun;
        }
        is_begun = true;
        line.extend_from_slice(&there[..taken.min(KEPT - line.len())]);
        input.consume(taken);
        if end.is_some() {
            return true;
        }
    }
}

/// Returns the answer to a line that is no message. The protocol would pass over it in silence.
fn refused(line: &[u8]) -> Option<Value> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let error = |code: i32, id: Value, message: String| {
        Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    };
    if line.strip_suffix(b"\n").unwrap_or(line).len() > LONGEST {
        let message = format!(
            "Invalid Request: a message has at most {LONGEST} bytes; a file may hold what is longer"
        );
        let envelope = serde_json::from_slice::<Envelope>(line);
        let id = envelope.map(|envelope| envelope.id).unwrap_or_default();
        return error(-32600, id, message);
    }
    let mut message = match serde_json::from_slice::<Value>(line) {
        Ok(message) => message,
        Err(why) => {
            let message = format!("Parse error: a message is one line of JSON; {why}");
            return error(-32700, Value::Null, message);
        }
    };
    let is_answer = message.get("result").or(message.get("error")).is_some();
    if message["method"].is_string() || is_answer {
        return None;
    }
    let id = message.get_mut("id").map(Value::take).unwrap_or_default();
    let message = "Invalid Request: a message is an object with a method, a result or an error";
    error(-32600, id, message.to_owned())
}

/// Passes on the lines that are messages.
async fn check(
    input: impl AsyncRead + Unpin,
    mut to_protocol: DuplexStream,
    output: Arc<Mutex<impl AsyncWrite + Unpin>>,
) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while read_line(&mut input, &mut line).await {
        match refused(&line) {
            Some(answer) => {
                if write(&output, format!("{answer}\n").as_bytes())
                    .await
                    .is_err()
                {
                    break;
                }
            }
            None => {
                if to_protocol.write_all(&line).await.is_err() {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn what_is_no_message_is_answered_and_not_passed_on() {
        let (mut client, input) = duplex(ROOM);
        let (output, mut shown) = duplex(ROOM);
        let Lines {
            mut requests,
            answers,
            written,
            ..
        } = between(input, output);
        let deep = [vec![b'['; 200], vec![b']'; 200]].concat();
        let mut sent =
            b"{\"id\":1,\"method\":\"ping\"}\nnot json\n{\"cut\n\n[2]\n{\"id\":7}\n".to_vec();
        sent.extend(deep);
        sent.extend(b"\n{\"id\":2,\"result\":{}}\n");
        client.write_all(&sent).await.unwrap();
        drop(client);
        let mut passed = String::new();
        requests.read_to_string(&mut passed).await.unwrap();
        let expected = "{\"id\":1,\"method\":\"ping\"}\n\n{\"id\":2,\"result\":{}}\n";
        assert_eq!(passed, expected);
        drop(answers);
        written.await.unwrap();
        let mut text = String::new();
        shown.read_to_string(&mut text).await.unwrap();
        let answers = text.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            (answer["error"]["code"].clone(), answer["id"].clone())
        });
        let answers: Vec<(Value, Value)> = answers.collect();
        let null = Value::Null;
        let expected = [
            (json!(-32700), null.clone()),
            (json!(-32700), null.clone()),
            (json!(-32600), null.clone()),
            (json!(-32600), json!(7)),
            (json!(-32700), null),
        ];
        assert_eq!(answers, expected, "{text}");
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_answered_with_the_limit_and_its_id() {
        let (mut client, input) = duplex(ROOM);
        let (output, mut shown) = duplex(ROOM);
        let Lines {
            mut requests,
            answers,
            written,
            ended,
        } = between(input, output);
        let long = "x".repeat(LONGEST);
        tokio::spawn(async move {
            let sent = format!("{{\"params\":\"{long}\",\"id\":\"a\"}}\n{{\"method\":\"ping\"}}\n");
            client.write_all(sent.as_bytes()).await.unwrap();
        });
        let mut passed = String::new();
        requests.read_to_string(&mut passed).await.unwrap();
        assert_eq!(passed, "{\"method\":\"ping\"}\n");
        assert!(ended.await.is_err(), "the client has closed its end");
        drop(answers);
        written.await.unwrap();
        let mut text = String::new();
        shown.read_to_string(&mut text).await.unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["id"], "a", "{text}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("at most 16777216 bytes"), "{text}");
    }

    #[tokio::test]
    async fn no_more_than_a_bound_is_kept_of_a_line() {
        let text = [vec![b'x'; KEPT + 9], b"\ny".to_vec()].concat();
        let mut input = BufReader::new(text.as_slice());
        let mut line = Vec::new();
        assert!(read_line(&mut input, &mut line).await);
        assert_eq!(line.len(), KEPT);
        assert!(read_line(&mut input, &mut line).await);
        assert_eq!(line, b"y");
        assert!(!read_line(&mut input, &mut line).await);
    }
}
