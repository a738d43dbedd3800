//! Sorted sets, with whole scores and without options.

use std::ops::Bound;

use super::call::Call;
use super::keyspace::Scores;
use super::number::integer;
use super::reply::{Failure, NOT_AN_INTEGER, SYNTAX};

pub(super) fn zadd(call: &mut Call<'_>) -> Result<(), Failure> {
    let (key, pairs) = (call.argument(1), call.arguments_from(2));
    if pairs.len() % 2 != 0 {
        return Err(SYNTAX);
    }
    let scored: Result<Vec<_>, Failure> = pairs
        .chunks_exact(2)
        .filter_map(|pair| pair.split_first())
        .map(|(score, member)| Ok((score_of(score)?, member.concat())))
        .collect();
    let scored = scored?;
    call.come_by(key);
    let mut added = 0;
    call.master.keyspace.change_scores(call.session.database, key, call.now, |scores| {
        let before = scores.len();
        let changes = add(scores, scored);
        added = scores.len() - before;
        changes
    })?;
    call.reply.integer(i64::try_from(added).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn zrem(call: &mut Call<'_>) -> Result<(), Failure> {
    let (key, members) = (call.argument(1), call.arguments_from(2));
    call.come_by(key);
    let removed = call.master.keyspace.change_scores(call.session.database, key, call.now, |scores| {
        members.iter().filter(|member| scores.remove(*member).is_some()).count()
    })?;
    call.reply.integer(i64::try_from(removed).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn zscore(call: &mut Call<'_>) -> Result<(), Failure> {
    let key = call.argument(1);
    call.come_by(key);
    let scores = call.master.keyspace.scores(call.session.database, key, call.now)?;
    match scores.and_then(|scores| scores.get(call.argument(2))) {
        Some(score) => call.reply.double(*score),
        None => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zremrangebyscore(call: &mut Call<'_>) -> Result<(), Failure> {
    let (key, from, to) = (call.argument(1), bound(call.argument(2))?, bound(call.argument(3))?);
    call.come_by(key);
    let removed = call.master.keyspace.change_scores(call.session.database, key, call.now, |scores| {
        let before = scores.len();
        scores.retain(|_, score| {
            let is_above = match from {
                Bound::Unbounded => true,
                Bound::Included(from) => *score >= from,
                Bound::Excluded(from) => *score > from,
            };
            let is_below = match to {
                Bound::Unbounded => true,
                Bound::Included(to) => *score <= to,
                Bound::Excluded(to) => *score < to,
            };
            !(is_above && is_below)
        });
        before - scores.len()
    })?;
    call.reply.integer(i64::try_from(removed).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn zrank(call: &mut Call<'_>) -> Result<(), Failure> {
    let (key, member) = (call.argument(1), call.argument(2));
    call.come_by(key);
    let rank = in_order(call, key)?.iter().position(|(_, other)| *other == *member);
    match rank {
        Some(rank) => call.reply.integer(i64::try_from(rank).unwrap_or(i64::MAX)),
        None => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zrange(call: &mut Call<'_>) -> Result<(), Failure> {
    range(call, false)
}

pub(super) fn zrevrange(call: &mut Call<'_>) -> Result<(), Failure> {
    range(call, true)
}

/// All members with their scores, in ascending order.
fn in_order(call: &mut Call<'_>, key: &[u8]) -> Result<Vec<(i64, Vec<u8>)>, Failure> {
    let scores = call.master.keyspace.scores(call.session.database, key, call.now)?;
    let mut all: Vec<_> =
        scores.into_iter().flatten().map(|(member, score)| (*score, member.clone())).collect();
    all.sort_unstable();
    Ok(all)
}

/// The members from one index to another, counted from either end.
fn range(call: &mut Call<'_>, largest_first: bool) -> Result<(), Failure> {
    let (key, options) = (call.argument(1), call.arguments_from(4));
    if !options.iter().all(|word| word.eq_ignore_ascii_case(b"WITHSCORES")) {
        return Err(SYNTAX);
    }
    let [start, stop] = [2, 3].map(|place| integer(call.argument(place)).ok_or(NOT_AN_INTEGER));
    let (start, stop) = (start?, stop?);
    call.come_by(key);
    let mut all = in_order(call, key)?;
    if largest_first {
        all.reverse();
    }
    let count = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let place = |end: i64| if end < 0 { end.saturating_add(count) } else { end };
    let (start, stop) = (place(start).max(0), place(stop).min(count - 1));
    let wanted = (0..).zip(&all).filter(|(place, _)| (start..=stop).contains(place));
    let wanted: Vec<_> = wanted.map(|(_, entry)| entry).collect();
    let (with_scores, resp3) = (!options.is_empty(), call.reply.resp3);
    call.reply.array(if with_scores && !resp3 { 2 * wanted.len() } else { wanted.len() });
    for (score, member) in wanted {
        if with_scores && resp3 {
            call.reply.array(2);
        }
        call.reply.bulk(member);
        if with_scores {
            call.reply.double(*score);
        }
    }
    Ok(())
}

/// Adds members or changes their scores. Returns how many were changed.
pub(super) fn add(scores: &mut Scores, scored: impl IntoIterator<Item = (i64, Vec<u8>)>) -> usize {
    scored.into_iter().filter(|(score, member)| scores.insert(member.clone(), *score) != Some(*score)).count()
}

fn score_of(text: &[u8]) -> Result<i64, Failure> {
    integer(text).ok_or(Failure::new("ERR value is not a valid float"))
}

fn bound(text: &[u8]) -> Result<Bound<i64>, Failure> {
    match text.strip_prefix(b"(") {
        _ if [&b"-inf"[..], b"+inf", b"inf"].contains(&text) => Some(Bound::Unbounded),
        Some(score) => integer(score).map(Bound::Excluded),
        None => integer(text).map(Bound::Included),
    }
    .ok_or(Failure::new("ERR min or max is not a float"))
}
