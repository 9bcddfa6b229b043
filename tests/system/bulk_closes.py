"""Closes many tabs at once on the fake desktop, again and again, while a user opens, closes and moves tabs and opens other
pages in them. A tab must not be asked to close if the request did not mean it, or if it shows another page than when the
client saw the list. This script repeats the user's actions, so that it can judge each action by the state before it.

    FM_SYSTEM_DRIVER=... python3 bulk_closes.py [ROUNDS [SEED]]
"""

import random
import sys

from fake import call, run_all

SITES = ("reddit.com", "old.reddit.com", "a.example", "notreddit.com")


def is_wanted(url):
    return url.split("/")[2] in ("reddit.com", "old.reddit.com")


def make_tabs(chance):
    return [{"id": f"t{i}", "window": str(chance.randint(1, 12)), "title": f"t{i}",
             "url": f"https://{chance.choice(SITES)}/{chance.choice((i, 'same'))}"} for i in range(chance.randint(1, 40))]


def make_rules(chance, ids):
    rules = []
    for i in range(chance.randint(0, 8)):
        on = chance.choice(ids)
        other = chance.choice([id for id in ids if id != on] or ["none"])
        rules.append({"once": True, "on": f"tab.close {on}", "do": chance.choice((
            {"tab.close": chance.choice(ids)},
            {"tab.move": {"id": chance.choice(ids), "before": chance.choice([*ids, None])}},
            # the user does not change the tab that is being closed, because it was checked before
            {"tab.go": {"id": other, "url": "https://bank.example/"}},
            {"tab.open": {"id": f"u{i}", "window": str(chance.randint(1, 12)), "title": "", "url": "https://reddit.com/mine"}}))})
    rules += [{"on": f"tab.close {chance.choice(ids)}", "do": "refuse"} for _ in range(chance.randint(0, 2))]
    return rules


def play(tabs, rules, action):
    """Repeats what the user does when the action begins. Returns true if the action then has no effect."""
    refused = False
    for rule in rules:
        if rule["on"] != action or rule.get("used"):
            continue
        if rule["do"] == "refuse":
            refused = True
            continue
        for what, value in rule["do"].items():
            if what == "tab.close":
                tabs.pop(value, None)
            elif what == "tab.go" and value["id"] in tabs:
                tabs[value["id"]] = value["url"]
            elif what == "tab.open":
                tabs[value["id"]] = value["url"]
        rule["used"] = True
    return refused


def judge(tabs, rules, wanted, told):
    """Raises AssertionError if anything is wrong. Returns how many tabs we have closed."""
    now = {tab["id"]: tab["url"] for tab in tabs}
    listed = dict(now)
    mine = {id: dict(rule) for id, rule in enumerate(rules)}
    count = 0
    for action in told["log"]:
        id = action.split()[1]
        assert action.startswith("tab.close ") and id in wanted.values(), f"nobody asked for {action}"
        assert now.get(id) == listed[id], f"{action}: it shows {now.get(id)}, and did {listed[id]}"
        refused = play(now, mine.values(), action)
        if not refused and now.pop(id, None):
            count += 1
    left = {id: url for id, url in told["left"].items() if id[0] in "tu"}
    assert left == now, f"at the end there is {left}, where {now} was to be"
    result = told["answers"][-1]["done"]["results"][0]
    assert sorted(result["closed"] + result["blocked"] + result["changed"]) == sorted(wanted), result
    for index in result["closed"]:
        assert wanted[index] not in left, f"{index} is there, and was told as closed"
    for index in result["blocked"] + result["changed"]:
        assert wanted[index] in left, f"{index} is not there, and was told as open"
    return count


def one_round(seed):
    chance = random.Random(seed)
    tabs = make_tabs(chance)
    rules = make_rules(chance, [tab["id"] for tab in tabs])
    order = sorted(tabs, key=lambda tab: int(tab["window"]))  # a stable sort: keeps the order of the tabs in each window
    wanted = {index: tab["id"] for index, tab in enumerate(order, 1) if is_wanted(tab["url"])}
    if not wanted:
        return 0
    indices = list(wanted)
    chance.shuffle(indices)
    told = run_all(call("list_tabs"), call("close_tab", tab_indices=indices), tabs=tabs, rules=rules, windows=[])
    return judge(tabs, rules, wanted, told)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = sys.argv[2] if len(sys.argv) > 2 else str(random.randrange(1 << 30))
    closed = wrong = 0
    for round_ in range(rounds):
        try:
            closed += one_round(f"{seed}/{round_}")
        except (AssertionError, KeyError) as fault:
            wrong += 1
            print(f"round {seed}/{round_}: {fault!r}")
    print(f"{rounds} bulk closes (seed {seed}): {closed} tabs closed, {wrong} rounds with a wrong one")
    return 1 if wrong or not closed else 0


if __name__ == "__main__":
    sys.exit(main())
