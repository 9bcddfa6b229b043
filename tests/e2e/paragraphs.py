"""Shows how a model answers for 20 paragraphs in session mode, with the prompts of the document that requested this mode: tags,
as a string_list, and a summary, as a text.

    python3 tests/e2e/paragraphs.py MODEL [TEMPERATURE]

FM_BIN is the folder of the programs (default: build/bin). Prints each answer, then how many of each kind are empty. The
exit status is 1 if a list or a text is empty, or a message fails.
"""

import os
import sys
import time

os.environ.setdefault("FM_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "bin"))

from gateway import Gateway  # noqa: E402

TAGS = ("Generate 3-5 topic tags for this content. Each tag should be 1-3 words, lowercase, specific to the content. "
        "Avoid generic tags like 'article' or 'content'.")
SUMMARY = "Summarize this content in 2-3 sentences. Be concise and capture the key points."

PARAGRAPHS = (
    "Sourdough bread rises without added yeast. A baker keeps a starter of flour and water in which wild yeast and bacteria "
    "live, feeds it every day, and mixes a part of it into the dough. The acids that the bacteria produce give the crumb "
    "its taste and keep the loaf fresh for days.",
    "The harbour of Rotterdam handles more freight than any other in Europe. Ships with up to 24,000 containers are "
    "unloaded by cranes that no longer have a driver on board, and trains take the boxes on to Duisburg, Basel and Milan "
    "within two days.",
    "When a star of eight solar masses has burned its fuel, its core collapses within a second. The outer layers fall in, "
    "bounce off the core and are thrown into space. What is left is a neutron star, in which a spoonful of matter weighs a "
    "billion tons.",
    "A hash table stores each value in a bucket whose number is computed from its key. As long as few keys share a bucket, "
    "a look-up takes the same time whether the table has ten entries or ten million. When it becomes too full, it is copied "
    "into a larger one.",
    "The city council decided on Tuesday to close two streets beside the primary school to cars, from half past seven to "
    "nine in the morning. Parents had collected 1,200 signatures after a girl was hit by a delivery van in March. Shop "
    "owners fear that customers will stay away.",
    "Octopuses have three hearts and blue blood. Two of the hearts pump blood through the gills, the third through the "
    "body, and that one stops while the animal swims. This is why most of them prefer to crawl along the sea floor.",
    "Our quarterly revenue grew by eleven percent to 48 million euros, mostly because of subscriptions. Costs for cloud "
    "servers rose faster, by nineteen percent. The board therefore wants to move the video archive to its own data centre "
    "by autumn.",
    "The Treaty of Westphalia ended thirty years of war in 1648. It gave the princes of the empire the right to decide on "
    "the religion of their lands, and recognised the independence of the Netherlands and of Switzerland. Historians see in "
    "it the beginning of the modern state.",
    "To repair a flat tyre, take the wheel off and lift one side of the tyre over the rim with two levers. Pull the tube "
    "out, pump it up and hold it under water until bubbles show the hole. Roughen the spot, put glue on it, wait five "
    "minutes and press the patch on.",
    "Malaria is caused by parasites that mosquitoes carry from person to person. Nets treated with insecticide have halved "
    "the number of deaths since 2000. A vaccine that was approved in 2021 protects small children for about a year and has "
    "to be given four times.",
    "The violinist played Bach's Chaconne without sheet music and without a break, seventeen minutes long. Her bow hardly "
    "left the strings. After the last note nobody in the small church of St Leonard moved for what felt like a minute, and "
    "then all stood up.",
    "Heat pumps take warmth from the outside air even when it is freezing. A liquid evaporates at a low temperature, a "
    "compressor raises its pressure and so its temperature, and in the house it gives the warmth off. For one unit of "
    "electricity they deliver three to four units of heat.",
    "Please find attached the minutes of yesterday's meeting. Anna will update the budget until Friday, Tom asks the "
    "supplier for a new offer for the sensors, and I will book the room for the workshop in Lyon. The next call is on "
    "Monday at ten.",
    "In the Atacama Desert rain falls once in several years. When it does, seeds that have waited in the ground for a "
    "decade germinate within days, and the plain turns violet. Botanists count more than two hundred species in such a "
    "spring.",
    "The defender lost the ball in his own half in the 88th minute, and the substitute, who had been on the pitch for three "
    "minutes, put it into the far corner. With this goal the team from the second division reached the final of the cup for "
    "the first time.",
    "Index funds buy all shares of a market instead of choosing among them. Since nobody has to be paid for choosing, they "
    "cost a tenth of what managed funds do. Over twenty years nine of ten managed funds earn less than the index that they "
    "are compared with.",
    "The tea ceremony takes place in a room of four and a half mats. The host cleans each utensil in front of the guests, "
    "whisks the powdered tea with water and turns the bowl before handing it over. Talk is about the scroll on the wall, "
    "the flowers and the season.",
    "A zero-day vulnerability in the mail server let attackers run commands without a password. The maker published a patch "
    "on Thursday. Administrators should install it at once, look for unknown files in the web folder, and change all keys "
    "that were stored on the machine.",
    "Glaciers in the Alps have lost a third of their volume since 2000. Below 3,000 metres most of them will be gone by the "
    "end of the century. Villages that live on meltwater in August plan reservoirs, and hydroelectric plants expect less "
    "power in late summer.",
    "The novel follows three sisters who inherit a lighthouse on a Scottish island. One wants to sell it, one wants to live "
    "in it, and the youngest discovers letters there that show who their father really was. The language is plain, and the "
    "sea is present on every page.",
)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    gateway = Gateway("--model", sys.argv[1], "--temperature", *(sys.argv[2:] or ["1"]), engine="llama")
    empty = {"string_list": 0, "text": 0}
    counts = []
    start = time.monotonic()
    for paragraph in PARAGRAPHS:
        for output_format, prompt in (("string_list", TAGS), ("text", SUMMARY)):
            session = gateway.open()
            answer = gateway.message(session, prompt, paragraph, output_format, timeout=600)
            assert answer["ok"], answer
            print(answer["result"], flush=True)
            entries = answer["result"] if output_format == "string_list" else [answer["result"]]
            empty[output_format] += not entries or not all(entry.strip() for entry in entries)
            if output_format == "string_list":
                counts.append(len(answer["result"]))
            gateway.ask("close-session", session_id=session)
    gateway.close()
    print(f"{len(PARAGRAPHS)} paragraphs, {time.monotonic() - start:.0f} s: {empty['string_list']} lists and {empty['text']} "
          f"texts are empty or have an empty entry; 3 to 5 tags {sum(3 <= count <= 5 for count in counts)} times: {counts}")
    sys.exit(any(empty.values()))


if __name__ == "__main__":
    main()
