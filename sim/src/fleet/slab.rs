//! A slab: reused places, with tickets that distinguish the users of one place.

/// Identifies the user of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlabTicket {
    pub(super) place: u32,
    pub(super) generation: u32,
}

#[derive(Debug)]
struct SlabPlace<T> {
    generation: u32,
    value: Option<T>,
}

/// Values by ticket.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<SlabPlace<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Keeps a value.
    pub(super) fn insert(&mut self, value: T) -> SlabTicket {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(SlabPlace {
                generation: 0,
                value: None,
            });
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let mut ticket = SlabTicket {
            place,
            generation: 0,
        };
        if let Some(entry) = self.places.get_mut(index(place)) {
            entry.generation = entry.generation.wrapping_add(1);
            entry.value = Some(value);
            ticket.generation = entry.generation;
        }
        ticket
    }

    /// Takes a value out; none if it was taken before.
    pub(super) fn remove(&mut self, ticket: SlabTicket) -> Option<T> {
        let entry = self.places.get_mut(index(ticket.place))?;
        if entry.generation != ticket.generation {
            return None;
        }
        let value = entry.value.take()?;
        self.free.push(ticket.place);
        Some(value)
    }

    /// Takes the value of a place, for a user that knows that it is still its own.
    pub(super) fn remove_from(&mut self, place: u32) -> Option<T> {
        let value = self.places.get_mut(index(place))?.value.take()?;
        self.free.push(place);
        Some(value)
    }
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once_even_when_its_place_is_used_again() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(second.place, first.place);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.remove(second), Some('b'));
    }
}
