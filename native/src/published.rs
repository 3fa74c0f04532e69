//! A short text that one thread writes and others read without a lock: a sequence lock, after H.-J. Boehm, "Can seqlocks get
//! along with programming language memory models?" (MSPC 2012).

use super::sync::{AtomicU64, Ordering, fence};

/// A reader that meets the writer this often goes without.
const TRIES: u32 = 3;

/// The text, of at most `8 * WORDS` bytes.
#[derive(Debug)]
pub(crate) struct PublishedText<const WORDS: usize> {
    /// Odd while a text is written.
    version: AtomicU64,
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// A copy of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextCopy<const WORDS: usize> {
    words: [[u8; 8]; WORDS],
    length: usize,
}

impl<const WORDS: usize> PublishedText<WORDS> {
    /// No text yet.
    pub(crate) fn empty() -> Self {
        Self {
            version: AtomicU64::new(0),
            length: AtomicU64::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Replaces the text. One thread at a time. A text that is too long becomes an empty one.
    pub(crate) fn write(&self, text: &[u8]) {
        let text = if text.len() > 8 * WORDS { &[] } else { text };
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, bytes) in self.words.iter().zip(text.chunks(8)) {
            let mut padded = [0; 8];
            padded
                .iter_mut()
                .zip(bytes)
                .for_each(|(to, from)| *to = *from);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        self.length.store(text.len() as u64, Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// The newest text; `None` if it is empty, or being written.
    pub(crate) fn read(&self) -> Option<TextCopy<WORDS>> {
        (0..TRIES)
            .find_map(|_| self.try_read())
            .filter(|text| text.length > 0)
    }

    fn try_read(&self) -> Option<TextCopy<WORDS>> {
        let version = self.version.load(Ordering::Acquire);
        if version % 2 == 1 {
            return None;
        }
        let length = self.length.load(Ordering::Relaxed);
        let mut words = [[0; 8]; WORDS];
        for (copy, word) in words.iter_mut().zip(&self.words) {
            *copy = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        fence(Ordering::Acquire);
        let is_whole = self.version.load(Ordering::Relaxed) == version;
        let length = usize::try_from(length).ok()?;
        is_whole.then_some(TextCopy { words, length })
    }
}

impl<const WORDS: usize> TextCopy<WORDS> {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let all = self.words.as_flattened();
        all.get(..self.length).unwrap_or_default()
    }
}
