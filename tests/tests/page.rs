//! The page of `explain --html` in a browser, driven through the DevTools protocol: skipped, and said so, where there is
//! no Chromium.

use assert_cmd::Command;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use tempfile::TempDir;

/// A headless Chromium with one tab.
struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    events: Vec<Value>,
    session: Option<String>,
    number: u64,
    /// Its profile.
    _folder: TempDir,
}

/// The Chromium on the path.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

impl Browser {
    /// None, with a message, if there is no Chromium.
    fn start() -> Option<Self> {
        let Some(program) = chromium() else {
            eprintln!("skipped: there is no Chromium on the path");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        // It takes commands from descriptor 3 and answers on 4.
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"]).arg(program);
        shell.args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]);
        shell.arg(format!("--user-data-dir={}", folder.path().display()));
        let mut process = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let commands = process.stdin.take().expect("is piped");
        let answers = BufReader::new(process.stdout.take().expect("is piped"));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Self { process, commands, messages, events: Vec::new(), session: None, number: 0, _folder: folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn receive(&self) -> Value {
        self.messages.recv_timeout(Duration::from_secs(60)).expect("Chromium answers")
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut command = json!({ "id": self.number, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        write!(self.commands, "{command}\0").expect("Chromium listens");
        loop {
            let message = self.receive();
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Opens a file in a window of so many pixels, and waits until it is there.
    fn open(&mut self, file: &Path, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.events.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
    }

    /// The value of an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_owned()
    }

    fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// What went wrong in the page, and what it asked of the network.
    fn complaints(&self) -> Vec<&Value> {
        let complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled") => true,
            Some("Network.requestWillBeSent") => event["params"]["type"] != "Document",
            _ => false,
        };
        self.events.iter().filter(complaint).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const TAB: (&str, u32) = ("Tab", 9);
const RIGHT: (&str, u32) = ("ArrowRight", 39);
const DOWN: (&str, u32) = ("ArrowDown", 40);

/// The pages of some kernels, each on a small case: global memory, shared memory, several lanes at a time, constant memory.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let page = |(kernel, size): (&str, [&str; 2])| {
        let file = folder.join(format!("{kernel}.html"));
        let mut busload = Command::new(env!("CARGO_BIN_EXE_busload-under-test"));
        busload.args(["explain", kernel, "--html"]).arg(&file).args(size).assert().success();
        file
    };
    let (shape, elements) = (["--shape", "128"], ["--elements", "4096"]);
    let kernels = [
        ("transpose_naive", shape),
        ("transpose_tiled", shape),
        ("gather_indexed", elements),
        ("bank_load_vec4", ["--words", "8"]),
        ("constant_divergent", elements),
    ];
    kernels.map(page).into()
}

#[test]
fn pages_fit_every_width_complain_of_nothing_and_ask_for_nothing() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for file in pages(folder.path()) {
        for width in [320, 360, 800, 1400] {
            browser.open(&file, width, 900);
            let name = format!("{} at {width} pixels", file.display());
            let accesses = "document.querySelectorAll('input[type=radio]').length";
            assert!(browser.value(accesses).as_u64() >= Some(2), "{name} shows no accesses");
            // Every access is looked at, as far as its figure could be too wide.
            browser.value("document.querySelectorAll('input[type=radio]').forEach((input) => input.click())");
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(width.into()), "{name} is {wide} wide");
            let complaints = browser.complaints();
            assert!(complaints.is_empty(), "{name}: {complaints:?}");
        }
    }
}

#[test]
fn the_keyboard_goes_through_accesses_warps_and_requests() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let tiled = &pages(folder.path())[1];
    assert!(tiled.ends_with("transpose_tiled.html"));
    browser.open(tiled, 1400, 900);
    let title = "document.querySelector('.shown h3').textContent";
    let caption = "document.querySelector('.shown figcaption').textContent";
    let figure = "document.querySelector('.shown .rows').textContent";
    let slider = |name| format!("document.querySelector('.shown [data-slider={name}]').getAttribute('aria-valuetext')");
    let outlined = "getComputedStyle(document.activeElement.closest('.access') ?? document.activeElement).outlineStyle";

    // The worst access is in front, and the first stop.
    assert!(browser.text(title).ends_with(", load tile"));
    assert_eq!(browser.text(caption), "32 lanes: 32 wavefronts");
    browser.press(TAB.0, TAB.1);
    assert_eq!(browser.text(outlined), "solid");
    // From the last access the arrow leads to the first.
    browser.press(DOWN.0, DOWN.1);
    assert!(browser.text(title).ends_with(", store tile"));
    browser.press(DOWN.0, DOWN.1);
    assert!(browser.text(title).ends_with(", load src"));
    assert_eq!(browser.text(caption), "32 lanes, 4 sectors in 1 line: 128 bytes moved, 128 used (100.0 %)");

    let before = browser.text(figure);
    browser.press(TAB.0, TAB.1);
    assert_eq!(browser.text(outlined), "solid");
    browser.press(RIGHT.0, RIGHT.1);
    assert_eq!(browser.text(&slider("warp")), "block (0, 0, 0), warp 1");
    let warp = browser.text(figure);
    assert_ne!(warp, before, "another warp loads another row");
    browser.press(TAB.0, TAB.1);
    browser.press(RIGHT.0, RIGHT.1);
    assert_eq!(browser.text(&slider("request")), "request 2 of 4 kept");
    assert_ne!(browser.text(figure), warp, "another request loads another row");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}

#[test]
fn the_page_follows_the_colours_asked_for_and_prints_without_controls() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    browser.open(&pages(folder.path())[0], 800, 900);
    let ground = "getComputedStyle(document.body).backgroundColor";
    let slider = "getComputedStyle(document.querySelector('[data-slider]')).display";
    let mut look = |media: &str, colours: &str| {
        let features = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        browser.call("Emulation.setEmulatedMedia", json!({ "media": media, "features": features }));
        (browser.text(ground), browser.text(slider))
    };
    let [light, dark, paper] = [("screen", "light"), ("screen", "dark"), ("print", "dark")].map(|(m, c)| look(m, c));
    assert_ne!(light.0, dark.0);
    assert_eq!(paper.0, "rgb(255, 255, 255)");
    assert!(light.1 != "none" && paper.1 == "none", "{light:?}, {paper:?}");
}
