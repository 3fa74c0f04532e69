//! The whole filter in a proxy whose calls fail, whose clock jumps, whose VMs trap, and which has neighbors.

use bolero::produce;

use super::script::{Drawn, Step};
use super::world::World;

#[test]
fn nothing_is_lost_by_what_goes_wrong_around_it() {
    let drawn = produce::<Vec<Drawn>>().with().len(0..150_usize);
    bolero::check!(name = "filter_faults")
        .with_generator(drawn)
        .map(|drawn| {
            drawn
                .iter()
                .map(|drawn| Step::of(drawn, true))
                .collect::<Vec<_>>()
        })
        .with_iterations(400)
        .for_each(|steps: &Vec<Step>| {
            let mut world = World::new(true);
            for step in steps {
                world.take(*step);
            }
            world.check();
            world.heal();
            world.end_all();
            world.check_ended();
            world.ticks(5);
            world.check();
            world.check_ended();
        });
}
