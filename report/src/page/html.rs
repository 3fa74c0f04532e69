//! A page as HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Block, Card, Page, Picture};
use crate::chart::canvas::style;
use crate::table::{Table, TableCell};

/// What all pages look like; charts have a style of their own.
const STYLE: &str = include_str!("style.css");

/// Charts narrower than this, in pixels, are placed side by side.
const SMALL: u32 = 500;

impl Page {
    /// One HTML file without script, font or picture from elsewhere.
    #[must_use]
    pub fn html(&self) -> String {
        of_page(self).into_string()
    }
}

fn of_page(page: &Page) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) }
                style { (PreEscaped(STYLE)) (PreEscaped(style())) }
            }
            body {
                main {
                    h1 { (page.title) }
                    @for block in &page.blocks { (of_block(block)) }
                }
            }
        }
        "\n"
    }
}

fn of_block(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Heading(text) => h2 { (text) },
            Block::Subheading(text) => h3 { (text) },
            Block::Paragraph(text) => p { (text) },
            Block::Note(text) => p.note { (text) },
            Block::Cards(cards) => div.cards { @for card in cards { (of_card(card)) } },
            Block::Table(table) => (of_table(table)),
            Block::Charts(charts) => (of_charts(charts)),
            Block::Folded { summary, block } => {
                details class=[matches!(**block, Block::Table(_)).then_some("long")] {
                    summary { (summary) }
                    (of_block(block))
                }
            }
        }
    }
}

fn of_card(card: &Card) -> Markup {
    html! {
        div.card {
            b { (card.title) }
            span.big.with { (card.with) } " " small { "with" } br;
            span.big.without { (card.without) } " " small { "without" } br;
            small { (card.note) }
        }
    }
}

fn of_table(table: &Table) -> Markup {
    let body = html! {
        div.wide {
            table {
                thead {
                    tr {
                        @for (name, columns) in &table.groups { th.group colspan=(columns) { (name) } }
                    }
                    tr { @for name in &table.head { th { (name) } } }
                }
                tbody {
                    @for row in &table.rows { tr { @for cell in row { td { (of_cell(cell)) } } } }
                }
            }
        }
    };
    let is_words = table.words >= table.head.len();
    let body = if is_words {
        html! { div.words { (body) } }
    } else {
        body
    };
    if table.is_wrapped {
        html! { div class={ "w" (table.words.min(2)) } { (body) } }
    } else {
        body
    }
}

fn of_cell(cell: &str) -> Markup {
    html! {
        @match TableCell::of(cell) {
            TableCell::Plain(text) => (text),
            TableCell::Stressed(text) => strong { (text) },
            TableCell::Bad(text) => strong.bad { (text) },
        }
    }
}

fn of_charts(charts: &[Picture]) -> Markup {
    let width = |picture: &Picture| match picture {
        Picture::Chart(chart) => chart.width,
        Picture::Bars(bars) => bars.width,
    };
    let svg = |picture: &Picture| match picture {
        Picture::Chart(chart) => chart.svg(),
        Picture::Bars(bars) => bars.svg(),
    };
    let figures = html! { @for picture in charts { figure { (PreEscaped(svg(picture))) } } };
    if charts.iter().all(|picture| width(picture) < SMALL) {
        html! { div.side-by-side { (figures) } }
    } else {
        figures
    }
}
