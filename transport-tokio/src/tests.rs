use crate::runtime::Runtime;

#[path = "../../tests/shared/opening.rs"]
mod opening;

#[tokio::test]
async fn a_name_is_reached_whose_first_address_swallows_packets() {
    opening::a_name_is_reached_whose_first_address_swallows_packets(Runtime).await;
}

#[tokio::test]
async fn an_opening_that_is_given_up_is_followed_by_one_to_another_address() {
    opening::an_opening_that_is_given_up_is_followed_by_one_to_another_address(Runtime).await;
}
