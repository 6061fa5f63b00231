//! Where wall time went, as the page shows it: single requests, flame graph, polls and waits.

use super::{PROFILE, effects, page};
use crate::browser::{Browser, Look};
use std::fs;
use std::path::{Path, PathBuf};

/// The profile of the other tests, with the wall time of stacks.
const WALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/wall.jsonl");

/// A record of single requests.
const EXAMPLES: &str = include_str!("../../fixtures/examples.jsonl");

/// A profile with wall time and single requests, in a file of this folder.
fn with_examples(folder: &Path) -> PathBuf {
    let file = folder.join("examples.jsonl");
    fs::write(&file, fs::read_to_string(WALL).unwrap() + EXAMPLES).unwrap();
    file
}

#[test]
fn requests_are_shown_span_by_span_and_followed_from_a_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), with_examples(folder.path()).to_str().unwrap());
    browser.open(&page, "", Look::Desktop);
    let link = browser.eval("document.getElementById('link-requests').parentNode.textContent");
    let lengths = ": p50 2.00 ms, p99 4.38 ms, max 9.00 ms, before the first experiment";
    assert_eq!(link, format!("Single requests, span by span{lengths}"));
    browser.eval("document.getElementById('link-requests').click()");
    assert_eq!(browser.eval("document.getElementById('tab-answer').hidden"), true);
    let chosen = "document.getElementById('request').selectedOptions[0].textContent";
    assert_eq!(browser.eval(chosen), "checkout (40)");
    assert_eq!(
        browser.eval("decodeURIComponent(location.hash)"),
        "#request=checkout+src/shop.rs:10"
    );
    let heads = "[...document.querySelectorAll('.trace-card h3')].map((head) => head.textContent)";
    assert_eq!(
        browser.eval(heads),
        serde_json::json!([
            "A usual one p50 of 40 is 2.01 ms",
            "A slow one p99 of 40 is 4.38 ms",
            "The slowest the slowest of 40"
        ])
    );
    let words = browser.eval("document.querySelector('.trace-card:nth-child(2) .why').textContent");
    assert_eq!(
        words,
        "4.38 ms, 38 % waiting for stock keeper in stock, 16 % waiting for something unknown in \
         </script><script>alert(1)</script>, 15 % running in stock"
    );
    // The rows are a tree, and the bars of a row lie where its intervals are.
    let rows = "[...document.querySelectorAll('#trace-0 [role=treeitem]')].map((row) => row.getAttribute('aria-level') + row.firstChild.textContent).join()";
    assert_eq!(
        browser.eval(rows),
        "1checkout,2stock,3db; query,2payment,3charge card,2</script><script>alert(1)</script>"
    );
    let bar = "(() => { const row = document.querySelectorAll('#trace-0 [role=treeitem]')[1]; const bars = row.querySelector('svg').getBoundingClientRect(); \
               const box = row.querySelector('.state-4').getBoundingClientRect(); return [(box.left - bars.left) / bars.width, box.width / bars.width].map((x) => x.toFixed(3)).join() })()";
    // From 150 to 900 of 2200 us: a span outlives the request.
    assert_eq!(browser.eval(bar), "0.068,0.341");
    browser.eval("document.querySelector('#trace-0 [role=treeitem]').focus()");
    let told = "document.querySelector('.trace-told').textContent";
    for (key, begin) in [
        ("ArrowDown", "stock: 1.12 ms, from 80.0 \u{b5}s to 1.20 ms. Itself: running 310 \u{b5}s"),
        ("ArrowDown", "db; query: 40.0"),
        ("End", "</script><script>alert(1)</script>: 900"),
        ("ArrowDown", "</script>"),
        ("Home", "checkout: 2.00 ms"),
    ] {
        browser.press(key);
        let words = browser.eval(told);
        assert!(words.as_str().unwrap().starts_with(begin), "{key}: {words}");
    }
    browser.eval("document.querySelector('.trace-card details summary').click()");
    browser.eval("new Promise((done) => setTimeout(done, 50))");
    let cells = "document.querySelectorAll('.trace-card details tbody tr')[1].textContent";
    assert_eq!(
        browser.eval(cells),
        "stocksrc/shop.rs:1280.0 \u{b5}s1.12 ms310 \u{b5}s60.0 \u{b5}s\u{2013}\u{2013}750 \u{b5}s\u{2013}"
    );
    let lost = browser.eval("document.querySelector('.trace-card:nth-child(3)').textContent");
    assert!(lost.as_str().unwrap().contains("12 short intervals are joined"), "{lost}");
    assert!(lost.as_str().unwrap().contains("3 more spans are told"), "{lost}");
    let (_, errors) = browser.requests_and_errors();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn requests_fit_a_phone_and_the_tabs_go_round() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), with_examples(folder.path()).to_str().unwrap());
    for look in [Look::Phone, Look::Dark] {
        browser.open(&page, "#request=GET+%2Fcart+src%2Fshop.rs%3A80", look);
        assert_eq!(browser.eval("document.querySelectorAll('.trace-card').length"), 3);
        assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
        browser.eval("document.getElementById('to-requests').focus()");
        browser.press("ArrowRight");
        assert_eq!(browser.eval("document.getElementById('tab-answer').hidden"), false);
        browser.press("ArrowLeft");
        assert_eq!(browser.eval("document.getElementById('tab-requests').hidden"), false);
        let (requests, errors) = browser.requests_and_errors();
        assert!(errors.is_empty() && requests.len() == 1, "{errors:?} {requests:?}");
    }
}

/// The frame that has the focus, or that the page tells of.
const TOLD: &str = "document.querySelector('#flame-frame .name').textContent";

#[test]
fn flame_graph_is_zoomed_by_click_and_from_a_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), WALL);
    browser.open(&page, "", Look::Desktop);
    assert_eq!(browser.eval("document.getElementById('tab-flame').hidden"), true);
    browser.eval("document.getElementById('to-flame').click()");
    assert_eq!(browser.eval("document.getElementById('tab-answer').hidden"), true);
    let widths = "[...document.querySelectorAll('.frame')].map((box) => Math.round(box.getBoundingClientRect().width))";
    let all = browser.eval(widths);
    assert!(all.as_array().unwrap().len() >= 13, "{all}");
    // The first has the most time, and the bands of a box fill it.
    let bands = "(() => { const box = document.querySelector('.frame'); const width = (node) => node.getBoundingClientRect().width; \
                 return Math.abs([...box.querySelectorAll('[class^=state]')].reduce((sum, band) => sum + width(band), 0) / width(box) - 1) < 0.001 })()";
    assert_eq!(browser.eval(bands), true);
    assert_eq!(browser.eval(TOLD), "all");
    browser.eval("document.querySelector('.frame').focus()");
    for (key, told) in [
        ("ArrowDown", "checkout"),
        ("ArrowRight", "GET /cart"),
        ("ArrowUp", "all"),
        ("ArrowDown", "checkout"),
        ("ArrowDown", "stock"),
        ("Enter", "stock"),
    ] {
        browser.press(key);
        assert_eq!(browser.eval(TOLD), told, "{key}");
    }
    let stock = "document.querySelector('.frame[aria-current=true]').getBoundingClientRect().width / document.getElementById('flame').clientWidth";
    assert_eq!(browser.eval(stock), 1.0);
    assert_eq!(
        browser.eval("decodeURIComponent(location.hash)"),
        "#stack=span+checkout+>+span+stock"
    );
    let words = browser.eval("document.getElementById('flame-frame').textContent");
    assert!(words.as_str().unwrap().contains("Woken by stock keeper 60.0 ms"), "{words}");
    browser.press("Escape");
    assert_eq!(browser.eval(TOLD), "checkout");
    browser.eval(
        "document.querySelector('[data-frame=\"7\"]')?.dispatchEvent(new MouseEvent('click'))",
    );
    browser.eval("document.getElementById('flame-out').click()");
    assert_eq!(browser.eval(TOLD), "all");
    let (_, errors) = browser.requests_and_errors();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn flame_graph_is_searched_and_is_a_table_too() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), WALL);
    for look in [Look::Phone, Look::Dark] {
        browser.open(&page, "#stack=&frames=db", look);
        assert_eq!(browser.eval("document.querySelectorAll('.frame.found').length"), 2);
        let found = browser.eval("document.getElementById('flame-found').textContent");
        assert_eq!(found, "2 stacks have it, with 14 % of the time");
        assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
        let rows = "[...document.querySelectorAll('#flame-table tbody tr')].map((row) => row.cells[0].textContent)";
        let rows = browser.eval(rows);
        assert_eq!(rows.as_array().unwrap().len(), 14, "{rows}");
        assert_eq!(
            (&rows[0], &rows[1], &rows[2]),
            (&"all".into(), &"checkout".into(), &"stock".into())
        );
        let (requests, errors) = browser.requests_and_errors();
        assert!(errors.is_empty() && requests.len() == 1, "{errors:?} {requests:?}");
    }
}

#[test]
fn ranking_leads_to_the_flame_graph_and_back() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page_without = page(folder.path(), PROFILE);
    browser.open(&page_without, "#stack=", Look::Desktop);
    assert_eq!(browser.eval("document.querySelector('.tabs, .to-flame')"), serde_json::Value::Null);
    let page = page(folder.path(), WALL);
    browser.open(&page, "", Look::Desktop);
    browser.eval("document.querySelector('[data-row=\"0\"] .to-flame').click()");
    assert_eq!(browser.eval(TOLD), "stock");
    // Rows come with the frame in which the list has its size again.
    browser.eval(
        "new Promise((done) => {
            const drawn = () => requestAnimationFrame(() => requestAnimationFrame(done));
            addEventListener('popstate', drawn);
            history.back();
        })",
    );
    assert_eq!(browser.eval("document.getElementById('tab-flame').hidden"), true);
    assert_eq!(effects(&browser.dom()).len(), 4);
}

#[test]
fn polls_long_polls_and_waits_for_others_are_sections() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page_of_wall = page(folder.path(), WALL);
    let text = |browser: &mut Browser, of: &str| {
        let text = browser.eval(&format!("document.querySelector('{of}').textContent"));
        text.as_str().unwrap().to_owned()
    };
    for look in [Look::Desktop, Look::Phone, Look::Dark] {
        browser.open(&page_of_wall, "", look);
        let long = text(&mut browser, "section[aria-labelledby=long-polls]");
        assert!(long.contains("Polls of 10.0 ms and more"), "{long}");
        let place = "audit blocked its worker for 80.0 ms at src/shop.rs:44 in \
                     shop::audit::</script>write (std::thread::functions::sleep), 12 times in 8.00 s";
        assert!(long.contains(place), "{long}");
        assert!(long.contains("task:audit, 75 % faster: throughput "), "{long}");
        assert!(long.contains("2 long polls of tasks that had handed their worker over"), "{long}");
        let rows = "[...document.querySelectorAll('section[aria-labelledby=polls] tbody tr')].map((row) => [0, 1, 2, 3, 4].map((i) => row.cells[i].textContent))";
        let rows = browser.eval(rows);
        assert_eq!(rows[0][0], "auditsrc/shop.rs:40", "{rows}");
        let tested = text(&mut browser, "section[aria-labelledby=polls] tbody tr");
        assert!(tested.contains("task:audit, 75 % faster: throughput +0.0 %"), "{tested}");
        assert_eq!((&rows[0][1], &rows[0][4]), (&"21".into(), &"81.0 ms".into()));
        assert_eq!((&rows[1][2], &rows[1][3]), (&"40.0 \u{b5}s".into(), &"300 \u{b5}s".into()));
        let edges = "[...document.querySelectorAll('.edge-table tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))";
        let edges = browser.eval(edges);
        assert!(edges.as_array().unwrap().len() >= 5, "{edges}");
        let drawn = "document.querySelectorAll('.edges .wait').length";
        assert_eq!(browser.eval(drawn), edges.as_array().unwrap().len());
        let keeper = "[...document.querySelectorAll('.edges .wait title')].map((it) => it.textContent).find((it) => it.startsWith('stock waits for stock keeper'))";
        assert_eq!(browser.eval(keeper), edge_of_stock());
        assert_eq!(browser.eval("document.body.scrollWidth <= innerWidth"), true);
        let (_, errors) = browser.requests_and_errors();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let without = page(folder.path(), PROFILE);
    browser.open(&without, "", Look::Desktop);
    let sections = "document.querySelector('#polls, #long-polls, #edges')";
    assert_eq!(browser.eval(sections), serde_json::Value::Null);
}

/// The wait of the fixture that is the longest of a span for a task.
fn edge_of_stock() -> &'static str {
    "stock waits for stock keeper: 60.0 ms, 14 % of wall time"
}
