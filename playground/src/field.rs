//! A setting of a custom story: its name in a link, its range, and its words on the page.

use serde::Serialize;

/// A setting.
#[derive(Debug, Clone, Serialize)]
pub struct SettingField {
    /// Its name in a link.
    pub key: &'static str,
    /// Its group on the page.
    pub group: &'static str,
    /// Its label.
    pub label: &'static str,
    /// What a number counts; empty: a plain number.
    pub unit: &'static str,
    /// Which values it may have.
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// Which values a setting may have.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum FieldKind {
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
        /// The step of the page's input; with a whole step, only whole numbers are valid.
        step: f64,
        /// The default.
        start: f64,
    },
    /// One of several; the first is the default.
    Choice {
        /// Names in a link, and labels.
        options: Vec<(&'static str, &'static str)>,
    },
}

/// A value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FieldValue {
    /// A number.
    Number(f64),
    /// The name of a choice.
    Choice(&'static str),
}

impl SettingField {
    /// The default.
    #[must_use]
    pub fn start(&self) -> FieldValue {
        match &self.kind {
            FieldKind::Number { start, .. } => FieldValue::Number(*start),
            FieldKind::Choice { options } => {
                FieldValue::Choice(options.first().map_or("", |(name, _)| name))
            }
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn parse(&self, text: &str) -> Result<FieldValue, String> {
        let key = self.key;
        match &self.kind {
            FieldKind::Number { min, max, .. } => {
                let number = text.parse::<f64>().ok();
                let number = number.filter(|number| (*min..=*max).contains(number));
                let number = number.filter(|number| !self.is_count() || number.fract() == 0.0);
                let number = number.ok_or_else(|| {
                    let what = if self.is_count() {
                        "whole number"
                    } else {
                        "number"
                    };
                    format!("{key}: found {text}, expected a {what} from {min} to {max}")
                })?;
                Ok(FieldValue::Number(number))
            }
            FieldKind::Choice { options } => {
                let found = options.iter().find(|(name, _)| *name == text);
                let (name, _) = found.ok_or_else(|| {
                    let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
                    format!("{key}: found {text}, expected one of {}", names.join(", "))
                })?;
                Ok(FieldValue::Choice(name))
            }
        }
    }

    /// Whether only whole numbers have a meaning.
    fn is_count(&self) -> bool {
        matches!(self.kind, FieldKind::Number { step, .. } if step.fract() == 0.0)
    }
}

impl FieldValue {
    /// The text that reads back as this value.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => format!("{number}"),
            Self::Choice(name) => (*name).to_owned(),
        }
    }
}
