//! A real browser, without a window: Chromium, driven by its DevTools protocol.
//!
//! Messages are JSON, each ended by a NUL byte, on the file descriptors 3 and 4 of the browser. A
//! shell opens these from named pipes.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{env, thread};

/// A browser that is silent for longer has hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser, until dropped.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    last_id: u64,
    /// Messages other than answers, since the page was opened.
    events: Vec<Value>,
    /// Of the page opened last.
    session: Option<String>,
    /// The browser's own files.
    _folder: tempfile::TempDir,
}

/// How a page is looked at.
#[derive(Clone, Copy)]
pub(crate) enum Look {
    Desktop,
    Phone,
    Dark,
}

impl Browser {
    /// Starts a browser; says so if there is none.
    pub(crate) fn start() -> Option<Browser> {
        let Some(program) = program() else {
            println!(
                "skipped: no browser to test the page in; install Debian's package `chromium`"
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = folder.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        let child = Command::new("sh")
            .args(["-c", r#"to=$1 from=$2; shift 2; exec "$@" 3<"$to" 4>"$from""#, "sh"])
            .args([&to, &from, &program])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .arg(format!("--user-data-dir={}", folder.path().join("user").display()))
            .arg("--remote-debugging-pipe")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each waits for the other end.
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for message in from.split(0).map_while(Result::ok) {
                let Ok(()) = sender.send(serde_json::from_slice(&message).unwrap()) else { break };
            }
        });
        Some(Browser {
            child,
            to,
            from: receiver,
            last_id: 0,
            events: vec![],
            session: None,
            _folder: folder,
        })
    }

    /// Opens a page anew, at this fragment, and waits until it is loaded.
    pub(crate) fn open(&mut self, page: &Path, fragment: &str, look: Look) {
        self.session = None;
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = self.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        self.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        let (width, height, mobile) = match look {
            Look::Phone => (360, 740, true),
            Look::Desktop | Look::Dark => (1200, 800, false),
        };
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if matches!(look, Look::Dark) { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media);
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}{fragment}", page.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let result = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// The page as it is now.
    pub(crate) fn dom(&mut self) -> String {
        self.eval("document.documentElement.outerHTML").as_str().unwrap().to_owned()
    }

    /// Presses a key of the keyboard.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "End" => (35, ""),
            "Home" => (36, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            other => (0, other),
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [down, "keyUp"] {
            let event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "text": if kind == "keyUp" { "" } else { text }});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Returns what the page asked for, and what went wrong in it, since it was opened.
    pub(crate) fn requests_and_errors(&mut self) -> (Vec<String>, Vec<Value>) {
        self.eval("1");
        let of = |method: &'static str| {
            self.events.iter().filter(move |event| event["method"] == method)
        };
        let requests = of("Network.requestWillBeSent")
            .map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned());
        let errors = of("Runtime.exceptionThrown").chain(of("Log.entryAdded"));
        (requests.collect(), errors.cloned().collect())
    }

    /// Calls a method of the protocol.
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.receive();
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn receive(&self) -> Value {
        self.from.recv_timeout(PATIENCE).expect("the browser hangs, or is gone")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = json!({"id": 0, "method": "Browser.close"});
        let told = self.to.write_all(format!("{close}\0").as_bytes()).is_ok();
        let end = Instant::now() + Duration::from_secs(5);
        while told && Instant::now() < end {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}
