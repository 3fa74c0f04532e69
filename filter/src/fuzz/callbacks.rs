//! The whole filter in a proxy where everything works, which calls back in any order.

use bolero::produce;

use super::script::{Drawn, Step};
use super::world::World;

#[test]
fn nothing_is_lost_in_whatever_order_callbacks_come() {
    let drawn = produce::<Vec<Drawn>>().with().len(0..150_usize);
    bolero::check!(name = "filter_callbacks")
        .with_generator(drawn)
        .map(|drawn| {
            drawn
                .iter()
                .map(|drawn| Step::of(drawn, false))
                .collect::<Vec<_>>()
        })
        .with_iterations(400)
        .for_each(|steps: &Vec<Step>| {
            let mut world = World::new(false);
            for step in steps {
                world.take(*step);
                if matches!(step, Step::Ticks(_)) {
                    world.check_gauges();
                }
            }
            world.check();
            world.check_gauges();
            world.end_all();
            world.check();
            world.check_ended();
            world.check_gauges();
            world.check_replies();
            world.ticks(3);
            world.check_gauges();
        });
}
