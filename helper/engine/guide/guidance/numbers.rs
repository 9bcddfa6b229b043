//! A part of llguidance's JSON compiler, put there by cmake/guidance_patch.cmake: it lets numbers end.
//!
//! The compiler's own numbers may have digits without end, which a small model writes until its tokens run out, and
//! exponents for which there is no double. `super` is llguidance's src/json/compiler.rs.
use super::NumberSchema;
use derivre::RegexAst;

/// At most 20 digits, as the largest integer of 64 bits has. No -0: few readers tell it from 0, and none writes it.
const INTEGER: &str = "0|-?[1-9][0-9]{0,19}";

/// What of a number stands before the point.
const WHOLE: &str = "-?(0|[1-9][0-9]{0,19})";

/// Two digits of an exponent: with 20 before the point a number stays below 1e120, and doubles end at 1.8e308.
const EXPONENT: &str = "([eE][+-]?[0-9]{1,2})?";

/// Digits after the point; and those of a range narrower than `NARROW`, which may hold no number of so few.
const PLACES: u32 = 20;
const NARROW_PLACES: u32 = 40;
const NARROW: f64 = 1e-18;

/// What of `range`, which the compiler made of the bounds, may be written. A single value stays as long as it is, and so
/// does an integer from 0 to a bound, which is below 2^53: nothing in them can run on.
pub(super) fn limited(range: String, number: &NumberSchema) -> RegexAst {
    let (minimum, maximum) = (number.get_minimum().0, number.get_maximum().0);
    let width = maximum.unwrap_or(f64::INFINITY) - minimum.unwrap_or(f64::NEG_INFINITY);
    let places = if width < NARROW { NARROW_PLACES } else { PLACES };
    if width == 0.0 || (number.integer && width.is_finite() && minimum >= Some(0.0)) {
        return RegexAst::Regex(range);
    }
    let all = RegexAst::Regex(match number.integer {
        true => INTEGER.to_string(),
        false => format!(r"{WHOLE}(\.[0-9]{{1,{places}}})?{EXPONENT}"),
    });
    match minimum.or(maximum) {
        Some(_) => RegexAst::And(vec![RegexAst::Regex(range), all]),
        None => all,
    }
}
