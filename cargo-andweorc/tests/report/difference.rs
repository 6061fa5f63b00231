//! The differential flame graph of `cargo andweorc diff --format html`, in a real browser where
//! there is one.

use crate::browser::{Browser, Look};
use crate::common::{command, stderr, stdout};
use std::fs;
use std::path::{Path, PathBuf};

const BEFORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wall.jsonl");

/// The page that compares the fixture with a version in which `stock` runs for 40 ms longer and is
/// three lines farther down, and `render` is called `draw`.
fn page(folder: &Path) -> PathBuf {
    let mut after = fs::read_to_string(BEFORE).unwrap();
    for (from, to) in [
        (r#""count":40,"running_ns":20000000"#, r#""count":40,"running_ns":60000000"#),
        (r#""file":"src/shop.rs","line":12"#, r#""file":"src/shop.rs","line":15"#),
        (r#""name": "render""#, r#""name": "draw""#),
    ] {
        assert!(after.contains(from), "{from}");
        after = after.replace(from, to);
    }
    let (after_file, page) = (folder.join("after.jsonl"), folder.join("diff.html"));
    fs::write(&after_file, after).unwrap();
    let output = command()
        .args(["diff", "--format", "html", BEFORE])
        .arg(&after_file)
        .arg("-o")
        .arg(&page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    page
}

/// The names in the boxes, with the class that says how each changed.
const BOXES: &str = "[...document.querySelectorAll('.frame')].map((box) => box.classList[1] + ' ' + \
                     box.querySelector('text').textContent)";

const TOLD: &str = "document.getElementById('flame-frame').textContent";

fn boxes(browser: &mut Browser) -> Vec<String> {
    let boxes = browser.eval(BOXES);
    boxes.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn boxes_are_as_wide_as_their_side_and_coloured_by_what_changed() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page(folder.path()), "", Look::Desktop);
    let of_b = boxes(&mut browser);
    // 40 ms more in 343 requests, of about 1.1 ms each.
    for shown in
        ["grew-2 all +117 µs", "grew-2 checkout +117 µs", "grew-2 stock +117 µs", "same GET /cart"]
    {
        assert!(of_b.iter().any(|it| it == shown), "{shown}: {of_b:?}");
    }
    assert!(of_b.iter().any(|it| it.starts_with("grew-2 draw +")), "{of_b:?}");
    assert!(!of_b.iter().any(|it| it.contains("render")), "{of_b:?}");
    let width = "document.querySelectorAll('.frame')[1].getBoundingClientRect().width / \
                 document.getElementById('flame').clientWidth";
    let wide = browser.eval(width).as_f64().unwrap();
    browser.eval("document.querySelector('input[name=side][value=A]').click()");
    let of_a = boxes(&mut browser);
    assert!(of_a.iter().any(|it| it.starts_with("shrank-2 render \u{2212}")), "{of_a:?}");
    assert!(!of_a.iter().any(|it| it.contains("draw")), "{of_a:?}");
    assert!(browser.eval(width).as_f64().unwrap() < wide, "checkout had a smaller part");
    assert!(browser.eval("location.hash").as_str().unwrap().starts_with("#side=A"));
    let (requests, errors) = browser.requests_and_errors();
    assert!(errors.is_empty() && requests.len() == 1, "{errors:?} {requests:?}");
}

#[test]
fn difference_is_told_in_words_and_reached_from_a_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    browser.open(&page, "", Look::Desktop);
    browser.eval("document.querySelector('.frame').focus()");
    for _ in 0..2 {
        browser.press("ArrowDown");
    }
    browser.press("Enter");
    let told = browser.eval(TOLD);
    let told = told.as_str().unwrap();
    assert!(told.contains("span stocksrc/shop.rs:15"), "{told}");
    assert!(told.contains("A 362 µs, B 478 µs: +117 µs (+32 %) · running +117 µs"), "{told}");
    assert!(told.contains("0.12 ended per request in A, 0.12 in B"), "{told}");
    // The same address shows the same.
    let hash = browser.eval("location.hash");
    browser.open(&page, hash.as_str().unwrap(), Look::Desktop);
    assert_eq!(browser.eval(TOLD), told);
    browser.press("/");
    for key in ["d", "r", "a", "w"] {
        browser.press(key);
    }
    let found = browser.eval("document.getElementById('flame-found').textContent");
    assert!(found.as_str().unwrap().starts_with("1 stack has it"), "{found}");
    browser.eval("document.getElementById('flame-out').click()");
    let rows = "[...document.querySelectorAll('#flame-table tbody tr')].map((row) => [...row.cells].map((it) => it.textContent).join('|'))";
    let rows = browser.eval(rows);
    let rows: Vec<&str> = rows.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(rows.contains(&"stock|362 µs|478 µs|+117 µs|+117 µs|0.12|0.12"), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("render|") && row.ends_with("|0.87|–")));
    assert!(rows.iter().any(|row| row.starts_with("draw|") && row.ends_with("|–|0.87")));
}

#[test]
fn difference_fits_a_phone_and_the_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let fill = "getComputedStyle(document.querySelector('.grew-2 .back')).fill";
    browser.open(&page, "", Look::Phone);
    assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
    let light = browser.eval(fill);
    browser.open(&page, "", Look::Dark);
    let dark = browser.eval(fill);
    assert!(light != dark && light.as_str().unwrap().contains("color("), "{light} {dark}");
}
