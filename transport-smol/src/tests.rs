use crate::runtime::Runtime;

#[path = "../../tests/shared/opening.rs"]
mod opening;

#[test]
fn a_name_is_reached_whose_first_address_swallows_packets() {
    smol::block_on(opening::a_name_is_reached_whose_first_address_swallows_packets(Runtime));
}

#[test]
fn an_opening_that_is_given_up_is_followed_by_one_to_another_address() {
    smol::block_on(opening::an_opening_that_is_given_up_is_followed_by_one_to_another_address(Runtime));
}
