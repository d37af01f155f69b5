//! What tokens cost.

use sampi_protocol::data::{Model, Usage};

/// Tokens that a price is for.
const PRICE_UNIT: f64 = 1_000_000.0;

/// How much more than plain input Anthropic takes for a cache entry that lives for one hour.
const LONG_CACHE_WRITE_FACTOR: f64 = 2.0;

/// Sets `totalTokens` and the cost from the counts and the model's prices.
pub(crate) fn settle(model: &Model, usage: &mut Usage) {
    let request = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    usage.total_tokens = request.saturating_add(usage.output);

    let prices = &model.cost;
    let tier = prices
        .tiers
        .iter()
        .flatten()
        .filter(|tier| request > tier.input_tokens_above)
        .max_by_key(|tier| tier.input_tokens_above);
    let (input, output, cache_read, cache_write) = match tier {
        Some(tier) => (tier.input, tier.output, tier.cache_read, tier.cache_write),
        None => (prices.input, prices.output, prices.cache_read, prices.cache_write),
    };

    let long = usage.cache_write1h.unwrap_or(0).min(usage.cache_write);
    let cost = &mut usage.cost;
    cost.input = price(input, usage.input);
    cost.output = price(output, usage.output);
    cost.cache_read = price(cache_read, usage.cache_read);
    cost.cache_write =
        price(cache_write, usage.cache_write - long) + price(input * LONG_CACHE_WRITE_FACTOR, long);
    cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
    cost.total_from_provider = Some(false);
}

// The price of one token comes first: Pi rounds in this order, and its figures are compared with ours.
fn price(per_unit: f64, tokens: u64) -> f64 {
    (per_unit / PRICE_UNIT) * tokens as f64
}

#[cfg(test)]
mod tests {
    use sampi_protocol::data::{CostTier, ModelCost};

    use super::*;

    fn model(cost: ModelCost) -> Model {
        Model { cost, ..Model::default() }
    }

    #[test]
    fn the_figures_are_those_of_pi_to_the_last_bit() {
        let model = model(ModelCost {
            input: 3.0,
            output: 15.0,
            cache_read: 0.3,
            cache_write: 3.75,
            ..ModelCost::default()
        });
        let mut usage = Usage {
            input: 101,
            output: 10,
            cache_read: 21,
            cache_write: 30,
            cache_write1h: Some(20),
            ..Usage::default()
        };
        settle(&model, &mut usage);
        assert_eq!(usage.total_tokens, 162);
        assert_eq!(usage.cost.input, 0.000303);
        assert_eq!(usage.cost.output, 0.00015000000000000001);
        assert_eq!(usage.cost.cache_read, 0.0000063);
        assert_eq!(usage.cost.cache_write, 0.0001575);
        assert_eq!(usage.cost.total, 0.0006168);
    }

    #[test]
    fn the_highest_tier_that_the_whole_request_passes_applies_to_all_of_it() {
        let tier = |above, input| CostTier {
            input_tokens_above: above,
            input,
            output: 20.0,
            cache_read: 1.0,
            cache_write: 0.0,
        };
        let model = model(ModelCost {
            input: 1.0,
            output: 2.0,
            cache_read: 0.1,
            cache_write: 0.0,
            tiers: Some(vec![tier(3000, 100.0), tier(2000, 10.0)]),
        });
        let mut usage = Usage { input: 500, output: 50, cache_read: 2500, ..Usage::default() };
        settle(&model, &mut usage);
        assert_eq!(
            (usage.cost.input, usage.cost.output, usage.cost.cache_read, usage.cost.total),
            (0.005, 0.001, 0.0025, 0.0085)
        );
    }
}
