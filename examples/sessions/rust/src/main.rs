//! A conversation with the local model through session mode (protocol/SESSIONS.md).
//!
//!     cargo run -- [FM_PROXY [OPTION...]]

use serde_json::{json, Value};
use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

const TEXT: &str = "Apples and pears grew in the garden. The plums came later, from a neighbour.";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A running `fm-proxy sessions`.
struct Gateway {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Gateway {
    fn start(program: OsString, options: impl Iterator<Item = OsString>) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("sessions").args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let requests = child.stdin.take().expect("stdin is a pipe");
        let answers = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Ok(Gateway { child, requests, answers })
    }

    /// Sends one request and waits for its answer.
    fn ask(&mut self, request: Value) -> Result<Value> {
        self.requests.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the gateway has ended".into());
        }
        let answer: Value = serde_json::from_str(&line)?;
        if answer["ok"] != true {
            return Err(text(&answer["error"])?.into());
        }
        Ok(answer)
    }
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| format!("{value} is no string").into())
}

fn converse(gateway: &mut Gateway) -> Result<()> {
    let availability = gateway.ask(json!({"command": "check-availability"}))?;
    if availability["available"] != true {
        writeln!(io::stdout(), "not available: {}", text(&availability["reason"])?)?;
        return Ok(());
    }
    let instructions = "You answer in few words.";
    let opened = gateway.ask(json!({"command": "open-session", "instructions": instructions}))?;
    let session = &opened["session_id"];
    let mut message = |prompt: &str, content: &str, format: &str| {
        gateway.ask(json!({"command": "message", "session_id": session, "prompt": prompt,
            "content": content, "output_format": format}))
    };
    let answer = message("List the fruits that the text names.", TEXT, "string_list")?;
    for fruit in answer["result"].as_array().ok_or("the result is no list")? {
        writeln!(io::stdout(), "- {}", text(fruit)?)?;
    }
    // The session knows what was said in it.
    let answer = message("Write a sentence about the first of them.", TEXT, "text")?;
    writeln!(io::stdout(), "{}", text(&answer["result"])?)?;
    gateway.ask(json!({"command": "close-session", "session_id": session}))?;
    gateway.ask(json!({"command": "shutdown"}))?;
    Ok(())
}

fn run() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let mut gateway = Gateway::start(arguments.next().unwrap_or("fm-proxy".into()), arguments)?;
    let talk = converse(&mut gateway);
    drop(gateway.requests); // this ends it, whatever went wrong
    let status = gateway.child.wait()?;
    talk?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the gateway ended: {status}").into()),
    }
}

fn main() -> ExitCode {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
