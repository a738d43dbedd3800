use tokio::runtime::Builder;

use crate::Config;
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

#[test]
fn a_runtime_that_lacks_timers_or_io_is_refused_when_a_locker_is_opened() {
    let said_with = |builder: &mut Builder| {
        let runtime = builder.build().unwrap();
        let _inside = runtime.enter();
        crate::open(Config::new(["redis://127.0.0.1:1"]).unwrap()).err().map(|error| error.to_string())
    };
    let said = |part| Some(format!("the async runtime here has no {part}: call `enable_all` on its builder"));
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        assert_eq!(said_with(builder.worker_threads(1)), said("timers"));
        assert_eq!(said_with(builder.enable_time()), said("IO"));
        assert_eq!(said_with(builder.enable_io()), None);
    }
}
