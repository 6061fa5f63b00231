//! The report as one page.
//!
//! Its script makes it from the data, which stands in it as JSON, and only by `textContent` and
//! attributes, so that a name can't become mark-up; `script_safe` keeps the JSON inside its
//! element.

mod cpu;
mod data;
mod dead_end;
mod events;
mod joint;
mod polls;
mod requests;

pub(crate) use data::shown_place;

use crate::web::{self, Editor, Sources, escaped};
use andweorc_profile::joint::United;
use andweorc_profile::plain;
use andweorc_profile::report::{self, Looks};
use std::path::PathBuf;

const BODY: &str = include_str!("page/body.html");
/// In the order in which each needs the ones before it.
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/format.js"),
    include_str!("page/model.js"),
    include_str!("page/address.js"),
    include_str!("page/flame.js"),
    include_str!("page/wall.js"),
    include_str!("page/cpu.js"),
    include_str!("page/requests.js"),
    include_str!("page/verdict.js"),
    include_str!("page/picture.js"),
    include_str!("page/chart.js"),
    include_str!("page/list.js"),
    include_str!("page/services.js"),
    include_str!("page/ranking.js"),
    include_str!("page/cards.js"),
    include_str!("page/experiments.js"),
    include_str!("page/waits.js"),
    include_str!("page/polls.js"),
    include_str!("page/edges.js"),
    include_str!("page/allocations.js"),
    include_str!("page/events.js"),
    include_str!("page/app.js"),
);

/// The page of runs that make one report. Source lines are looked for in the project here, and in
/// those that the profiles lie in.
pub(crate) fn html(united: &United, profiles: &[PathBuf], editor: &Editor) -> String {
    let (runs, analysis) = (&united.runs, united.analyse());
    let data = data::page(runs, &analysis, &mut Sources::near(profiles, editor));
    let json = serde_json::to_string(&data).expect("names are strings and numbers are numbers");
    let program = runs.first().map_or("no run", |run| &run.header.program);
    let body = web::fill(
        BODY,
        &[
            ("words", &escaped(&report::text(runs, &analysis, Looks::default()))),
            ("data", &script_safe(&json)),
            ("script", SCRIPT),
        ],
    );
    web::page(&plain::name(program), &body, Some(SCRIPT))
}

/// JSON that can stand in a `script` element: nothing in it ends the element, or begins a comment.
pub(crate) fn script_safe(json: &str) -> String {
    // In JSON these are found only inside strings.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_and_inside_its_element() {
        let value = serde_json::json!({"</script><!--": "a & b \u{2028}"});
        let safe = script_safe(&value.to_string());
        assert!(!safe.contains(['<', '>', '&']), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }

    #[test]
    fn the_script_does_not_end_itself() {
        assert!(!SCRIPT.contains("</"));
        assert!(!SCRIPT.contains("innerHTML"));
    }
}
