//! Partitions of random graphs, compared with the optimum.

use super::*;

/// A random graph whose vertices fit with some room to spare.
struct Example {
    graph: Partitioned,
    capacities: Vec<Amounts>,
}

fn example(seed: u64, vertices: usize, parts: usize, degree: f64) -> Example {
    let mut draws = Draws(mix(seed ^ 0xabcd));
    let mut demands = Vec::new();
    for _ in 0..vertices {
        demands.push([0.1 + draws.next(), 0.1 + draws.next()]);
    }
    let mut edges = Vec::new();
    for a in 0..vertices {
        for b in a + 1..vertices {
            if draws.next() < degree / vertices as f64 {
                // Rates differ by orders of magnitude.
                edges.push((a, b, 10_f64.powf(3.0 * draws.next())));
            }
        }
    }
    let whole = demands.iter().fold([0.0; 2], |sum: Amounts, one| {
        [sum[0] + one[0], sum[1] + one[1]]
    });
    let shares: Vec<f64> = (0..parts).map(|_| 0.5 + draws.next()).collect();
    let all: f64 = shares.iter().sum();
    let capacities = shares
        .iter()
        .map(|share| whole.map(|amount| amount * 1.3 * share / all))
        .collect();
    Example {
        graph: Partitioned::new(demands, edges.into_iter()),
        capacities,
    }
}

fn fits(example: &Example, parts: &[usize]) -> bool {
    let mut used = vec![[0.0; 2]; example.capacities.len()];
    for (demand, part) in example.graph.demands.iter().zip(parts) {
        let sum: &mut Amounts = &mut used[*part];
        *sum = [sum[0] + demand[0], sum[1] + demand[1]];
    }
    let mut pairs = used.iter().zip(&example.capacities);
    pairs.all(|(used, whole)| {
        (0..2).all(|dimension| used[dimension] <= whole[dimension] * (1.0 + 1e-8))
    })
}

/// The least cut of all distributions that fit.
fn optimum(example: &Example) -> Option<f64> {
    let (count, parts) = (example.graph.len(), example.capacities.len());
    let mut best: Option<f64> = None;
    for number in 0..parts.pow(u32::try_from(count).unwrap()) {
        let mut rest = number;
        let assigned: Vec<usize> = (0..count)
            .map(|_| {
                let part = rest % parts;
                rest /= parts;
                part
            })
            .collect();
        if fits(example, &assigned) {
            let cut = example.graph.cut(&assigned);
            best = Some(best.map_or(cut, |least| least.min(cut)));
        }
    }
    best
}

#[test]
fn small_graphs_are_cut_almost_as_well_as_possible() {
    let (mut found, mut best, mut exact, mut missed, mut count) = (0.0, 0.0, 0, 0, 0);
    for seed in 0..60 {
        let (vertices, parts) = if seed % 2 == 0 { (9, 3) } else { (12, 2) };
        let example = example(seed, vertices, parts, 4.0);
        let Some(least) = optimum(&example) else {
            continue;
        };
        count += 1;
        let Some(assigned) = partition(&example.graph, &example.capacities, None, 1) else {
            missed += 1;
            continue;
        };
        assert!(fits(&example, &assigned), "seed {seed}");
        let cut = example.graph.cut(&assigned);
        assert!(
            cut >= least * (1.0 - 1e-9),
            "seed {seed}: below the optimum"
        );
        (found, best) = (found + cut, best + least);
        exact += usize::from(cut <= least * (1.0 + 1e-9));
    }
    assert!(count >= 40, "{count} of 60 can be distributed");
    assert_eq!(missed, 0, "all that can be distributed are");
    assert!(exact * 10 >= count * 8, "{exact} of {count} are optimal");
    assert!(found <= best * 1.02, "{found} against {best}");
}

#[test]
fn capacities_hold_and_the_seed_decides_on_graphs_of_several_levels() {
    for seed in 0..6 {
        let example = example(seed, 400, 7, 6.0);

        let first = partition(&example.graph, &example.capacities, None, seed).unwrap();
        let second = partition(&example.graph, &example.capacities, None, seed).unwrap();

        assert_eq!(first, second, "seed {seed}");
        assert!(fits(&example, &first), "seed {seed}");
    }
}

#[test]
fn clusters_are_found() {
    // Eight groups of 40 with many calls among themselves, and few to others.
    let mut draws = Draws(7);
    let mut edges = Vec::new();
    for vertex in 0..320_usize {
        for _ in 0..6 {
            let other = vertex % 8 + 8 * ((draws.next() * 40.0) as usize);
            edges.push((vertex, other, 10.0));
        }
        edges.push((vertex, (draws.next() * 320.0) as usize, 1.0));
    }
    let all: f64 = edges.iter().map(|(_, _, weight)| weight).sum();
    let graph = Partitioned::new(vec![[1.0, 1.0]; 320], edges.into_iter());

    let parts = partition(&graph, &[[44.0, 44.0]; 8], None, 3).unwrap();

    // Edges between groups have less than 2 % of the weight; a random distribution cuts 7/8.
    assert!(
        graph.cut(&parts) < all * 0.03,
        "{} of {all}",
        graph.cut(&parts)
    );
}

#[test]
fn a_present_distribution_is_never_made_worse() {
    for seed in 0..10 {
        let example = example(seed, 60, 4, 5.0);
        let present = initial::distribute(&example.graph, &example.capacities, 0, &mut Draws(1));
        let present = present.unwrap();

        let parts = partition(&example.graph, &example.capacities, Some(&present), 1).unwrap();

        assert!(example.graph.cut(&parts) <= example.graph.cut(&present));
    }
}

#[test]
fn what_does_not_fit_is_not_distributed() {
    let graph = Partitioned::new(vec![[2.0, 1.0]; 3], std::iter::empty());

    assert_eq!(partition(&graph, &[[3.0, 9.0]; 2], None, 1), None);
    assert!(partition(&graph, &[[3.0, 9.0]; 3], None, 1).is_some());
}
