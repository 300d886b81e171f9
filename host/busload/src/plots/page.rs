//! All plots on one page, each with its figures as a table beside it.

use super::catalogue::{Chapter, chapters, left_out};
use super::draw::{Room, inline};
use super::material::{Material, Series};
use super::picture::{Plot, Table};
use crate::html;
use crate::report::escape::markup;
use crate::suite::Suite;

/// The page of what some files hold.
#[must_use]
pub fn page(suite: &Suite, material: &Material) -> String {
    let chapters = chapters(material);
    let heading = heading(material);
    let body = html::fill(include_str!("page.html"), |part| match part {
        "heading" => markup(&heading),
        "sources" => sources(material),
        "contents" => chapters.iter().map(contents).collect(),
        "chapters" => chapters.iter().map(chapter).collect(),
        "left-out" => of_left_out(&left_out(suite, material)),
        _ => unreachable!("page.html has no {part}"),
    });
    html::page(&heading, include_str!("page.css"), &body)
}

fn heading(material: &Material) -> String {
    let mut names: Vec<&str> = material.series.iter().map(|series| series.machine.name.as_str()).collect();
    names.extend(
        material.forecasts.iter().filter(|forecast| forecast.series.is_none()).map(|forecast| forecast.chip.as_str()),
    );
    names.dedup();
    match names.as_slice() {
        [] => "Simulated".to_owned(),
        names => format!("Memory access on {}", names.join(" · ")),
    }
}

/// What was measured and predicted, each with its colour where there are several.
fn sources(material: &Material) -> String {
    let several = material.series.len() > 1;
    let source = |(number, series): (usize, &Series)| {
        let ink = if several { format!(" style=\"--ink:var(--series-{})\"", number % 8 + 1) } else { String::new() };
        let is_predicted = material.forecasts.iter().any(|forecast| forecast.series == Some(number));
        let predicted =
            if is_predicted { "; predicted from simulated counts and a description of the chip" } else { "" };
        format!("<li{ink}>{}<span>{}{predicted}</span></li>\n", markup(&series.label), markup(&facts(series)))
    };
    let measured: String = material.series.iter().enumerate().map(source).collect();
    let forecasts = material.forecasts.iter().filter(|forecast| forecast.series.is_none());
    let predicted: String = forecasts
        .map(|of| {
            format!(
                "<li>{}<span>predicted from simulated counts and a description of the chip</span></li>\n",
                markup(&of.chip)
            )
        })
        .collect();
    let unfinished = material.unfinished.iter().map(|file| {
        format!(
            "<p><strong>{} is unfinished:</strong> the run that wrote it was ended before its last case.</p>\n",
            markup(file)
        )
    });
    format!("<ul class=\"sources\">\n{measured}{predicted}</ul>\n{}", unfinished.collect::<String>())
}

fn facts(series: &Series) -> String {
    let machine = &series.machine;
    let mut facts = vec![format!("measured, {} SMs", machine.sm_count)];
    facts.extend(machine.l2_bytes.map(|bytes| format!("{} MiB of L2", bytes >> 20)));
    facts.extend(machine.peak_gbps.map(|gbps| format!("peak {gbps:.0} GB/s")));
    facts.extend(machine.copy_gbps.map(|gbps| format!("copy {gbps:.0} GB/s")));
    facts.extend(machine.driver.as_ref().map(|driver| format!("driver for CUDA {driver}")));
    facts.extend(series.backend.as_ref().map(|backend| format!("PTX by {backend}")));
    facts.join(", ")
}

fn contents(chapter: &Chapter) -> String {
    // What the chapter says already is left out.
    let short = |title: &str| markup(title.trim_start_matches("Bandwidth against ").trim_start_matches("Samples of "));
    let link = |plot: &Plot| format!("<a href=\"#{}\">{}</a>\n", plot.name, short(&plot.title));
    format!("<p><strong>{}</strong> {}</p>\n", chapter.title, chapter.plots.iter().map(link).collect::<String>())
}

fn chapter(chapter: &Chapter) -> String {
    let Chapter { title, says, plots } = chapter;
    // Samples are many, and of interest when something is odd.
    let is_folded = *title == "Samples";
    let shown = |plot: &Plot| match is_folded {
        true => format!("<details>\n<summary>{}</summary>\n{}</details>\n", markup(&plot.title), figure(plot)),
        false => figure(plot),
    };
    format!(
        "<section>\n<h2>{title}</h2>\n<p class=\"quiet\">{says}</p>\n{}</section>\n",
        plots.iter().map(shown).collect::<String>()
    )
}

/// A plot with its heading and its table.
pub(super) fn figure(plot: &Plot) -> String {
    let Plot { name, title, says, table: of, .. } = plot;
    let (title, says) = (markup(title), markup(says));
    let [wide, narrow] = [Room::Wide, Room::Narrow].map(|room| inline(plot, room));
    let table = table(of, &title);
    format!(
        "<figure id=\"{name}\">\n<figcaption><h3>{title}</h3> <code>{name}</code><p>{says}</p></figcaption>\n<div class=\"pair\">\n\
         <div class=\"drawing\">\n<div class=\"wide\">{wide}</div>\n<div class=\"narrow\">{narrow}</div>\n</div>\n\
         <div class=\"figures\" tabindex=\"0\" role=\"region\" aria-label=\"Figures: {title}\">\n{table}</div>\n</div>\n</figure>\n"
    )
}

/// A table; its title is for those who do not see it, and markup.
pub(super) fn table(table: &Table, title: &str) -> String {
    // A column of words stands to the left.
    let is_word = |text: &str| text.starts_with(char::is_alphabetic) || text.contains('=');
    let is_word = |column: usize| table.rows.iter().any(|row| is_word(&row[column]));
    let words: Vec<_> = (0..table.columns.len()).map(is_word).collect();
    let class = |column: usize| if words[column] { " class=\"word\"" } else { "" };
    let columns = table.columns.iter().enumerate();
    let head: String =
        columns.map(|(n, column)| format!("<th scope=\"col\"{}>{}</th>", class(n), markup(column))).collect();
    let row = |row: &Vec<String>| {
        let cell = |(n, text): (usize, &String)| match n {
            0 => format!("<th scope=\"row\"{}>{}</th>", class(n), markup(text)),
            _ => format!("<td{}>{}</td>", class(n), markup(text)),
        };
        format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = table.rows.iter().map(row).collect();
    format!("<table>\n<caption>{title}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// What no plot was made of. Ladders and samples that are missing are said in one line.
fn of_left_out(left_out: &[(String, String)]) -> String {
    let is_of_family = |name: &str| name.starts_with("ladder-") || name.starts_with("samples-");
    let (families, plots): (Vec<_>, Vec<_>) = left_out.iter().partition(|(name, _)| is_of_family(name));
    let mut items: Vec<_> =
        plots.iter().map(|(name, what)| format!("<li><code>{name}</code>: {}</li>\n", markup(what))).collect();
    if !families.is_empty() {
        let names: Vec<_> = families.iter().map(|(name, _)| format!("<code>{name}</code>")).collect();
        items.push(format!("<li>{}: measure with <code>bench --json FILE</code></li>\n", names.join(", ")));
    }
    match items.is_empty() {
        true => String::new(),
        false => format!(
            "<h2>Left out</h2>\n<p>The files hold nothing for these plots:</p>\n<ul class=\"left-out\">\n{}</ul>\n",
            items.concat()
        ),
    }
}
