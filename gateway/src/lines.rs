//! Standard input and output as lines of JSON. A line that is no JSON is answered with an error, as JSON-RPC 2.0 wants
//! (section 5.1, -32700): a client would wait for ever for its answer.

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::json;
use tokio::io::{
    self, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex,
};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Bytes that wait between the protocol and the standard streams.
const ROOM: usize = 64 << 10;

/// What the protocol reads and writes instead of the standard streams.
pub struct Lines {
    /// What it reads.
    pub requests: DuplexStream,
    /// What it writes.
    pub answers: DuplexStream,
    /// Ends when the protocol has closed `answers`, and all of them are written.
    pub written: JoinHandle<()>,
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
    tokio::spawn(check(input, to_protocol, Arc::clone(&output)));
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
    }
}

async fn write(output: &Mutex<impl AsyncWrite + Unpin>, line: &[u8]) -> io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(line).await?;
    output.flush().await
}

/// Passes on the lines that are JSON.
async fn check(
    input: impl AsyncRead + Unpin,
    mut to_protocol: DuplexStream,
    output: Arc<Mutex<impl AsyncWrite + Unpin>>,
) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while input
        .read_until(b'\n', &mut line)
        .await
        .is_ok_and(|read| read > 0)
    {
        let is_empty = line.trim_ascii().is_empty();
        match serde_json::from_slice::<IgnoredAny>(&line) {
            Err(error) if !is_empty => {
                let answer = json!({"jsonrpc": "2.0", "id": null, "error": {
                    "code": -32700,
                    "message": format!("Parse error: a message is one line of JSON; {error}"),
                }});
                if write(&output, format!("{answer}\n").as_bytes())
                    .await
                    .is_err()
                {
                    break;
                }
            }
            _ => {
                if to_protocol.write_all(&line).await.is_err() {
                    break;
                }
            }
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn what_is_no_json_is_answered_and_not_passed_on() {
        let (mut client, input) = duplex(ROOM);
        let (output, mut shown) = duplex(ROOM);
        let Lines {
            mut requests,
            answers,
            written,
        } = between(input, output);
        client
            .write_all(b"{\"id\":1}\nnot json\n{\"cut\n\n[2]\n")
            .await
            .unwrap();
        drop(client);
        let mut passed = String::new();
        requests.read_to_string(&mut passed).await.unwrap();
        assert_eq!(passed, "{\"id\":1}\n\n[2]\n");
        drop(answers);
        written.await.unwrap();
        let mut text = String::new();
        shown.read_to_string(&mut text).await.unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        for line in lines {
            let answer: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(answer["error"]["code"], -32700);
            assert!(answer["id"].is_null());
        }
    }
}
