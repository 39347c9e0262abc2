//! Numbers the distinct values of one column chunk in order of appearance.

/// Most distinct values; columns with more do better without a dictionary.
pub(super) const MAX_VALUES: usize = 1 << 14;
const FIRST_SLOTS: usize = 1 << 8;
const EMPTY: u32 = u32::MAX;

/// The distinct values and a hash table over them. It is cleared for each chunk; its memory is reused.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    values: Vec<i64>,
    slots: Vec<u32>,
}

impl Dictionary {
    /// Returns the values in order of their numbers.
    pub(super) fn values(&self) -> &[i64] {
        &self.values
    }

    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.slots.fill(EMPTY);
    }

    /// Returns the bit width of a number.
    pub(super) fn width(&self) -> u32 {
        usize::BITS - self.values.len().saturating_sub(1).leading_zeros()
    }

    /// Sets `numbers` to the numbers of `values`. Returns whether the dictionary stays within `max_values`; otherwise
    /// it is unchanged and `numbers` has no meaning.
    pub(super) fn number_all(
        &mut self,
        values: &[i64],
        max_values: usize,
        numbers: &mut Vec<u32>,
    ) -> bool {
        let known = self.values.len();
        numbers.clear();
        let Some(first) = values.first() else {
            return true;
        };
        let mut last = (*first, self.number(*first));
        for value in values {
            if *value != last.0 {
                last = (*value, self.number(*value));
                if self.values.len() > max_values {
                    self.truncate(known);
                    return false;
                }
            }
            numbers.push(last.1);
        }
        if self.values.len() > max_values {
            self.truncate(known);
            return false;
        }
        true
    }

    #[inline]
    fn number(&mut self, value: i64) -> u32 {
        if (self.values.len() + 1) * 2 > self.slots.len() {
            self.rehash((self.slots.len() * 4).max(FIRST_SLOTS));
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(value) & mask;
        loop {
            match self.slots[slot] {
                EMPTY => break,
                number if self.values[number as usize] == value => return number,
                _ => slot = (slot + 1) & mask,
            }
        }
        let number = self.values.len() as u32;
        self.slots[slot] = number;
        self.values.push(value);
        number
    }

    /// Forgets all but the first `len` values.
    pub(super) fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.rehash(self.slots.len());
    }

    fn rehash(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        for (number, value) in self.values.iter().enumerate() {
            let mut slot = hash(*value) & (slots - 1);
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = number as u32;
        }
    }
}

#[inline]
fn hash(value: i64) -> usize {
    ((value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_as_they_appear() {
        let mut dictionary = Dictionary::default();
        let mut numbers = Vec::new();
        assert!(dictionary.number_all(&[9, 9, -1, 9, 4], 8, &mut numbers));
        assert_eq!(numbers, [0, 0, 1, 0, 2]);
        assert_eq!(dictionary.values(), [9, -1, 4]);
        assert_eq!(dictionary.width(), 2);
    }

    #[test]
    fn too_many_values_leave_the_dictionary_as_it_was() {
        let mut dictionary = Dictionary::default();
        let mut numbers = Vec::new();
        assert!(dictionary.number_all(&[1, 2], 3, &mut numbers));
        assert!(!dictionary.number_all(&[3, 4], 3, &mut numbers));
        assert_eq!(dictionary.values(), [1, 2]);
        assert!(dictionary.number_all(&[2, 3], 3, &mut numbers));
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn growing_keeps_the_numbers() {
        let mut dictionary = Dictionary::default();
        let mut numbers = Vec::new();
        let values: Vec<i64> = (0..10_000).map(|i| i << 40).collect();
        assert!(dictionary.number_all(&values, MAX_VALUES, &mut numbers));
        assert!(numbers.iter().enumerate().all(|(i, n)| i == *n as usize));
        assert!(dictionary.number_all(&values[..7], MAX_VALUES, &mut numbers));
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    }
}
