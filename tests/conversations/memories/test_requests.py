"""Which messages ask to have something remembered, and what of them is kept."""

import pytest

from conversations.context.memories import fact_to_remember

REQUESTS = {
    "Remember that I am vegetarian.": "I am vegetarian.",
    "remember that I'm vegetarian": "I'm vegetarian",
    "Remember that I’m vegetarian. What can I cook tonight?": "I’m vegetarian.",
    "Please remember that I live in Ghent! Where is it?": "I live in Ghent!",
    "please remember: my dog is called Rex": "my dog is called Rex",
    "Please, remember: I have two children. My son is 5. What shall we do?": "I have two children. My son is 5.",
    "Remember: I'm vegan. Now write me a menu.": "I'm vegan.",
    "Remember:\nI'm vegan and allergic to nuts.\n\nWrite a menu.": "I'm vegan and allergic to nuts.",
    "remember I am a nurse": "I am a nurse",
    "Remember my name is Bob.": "my name is Bob.",
    "Remember we moved to Oslo in 2024.": "we moved to Oslo in 2024.",
    "Hey, please remember that my doctor is Dr. Jones. Who is she?": "my doctor is Dr. Jones.",
    "Could you please remember that I prefer metric units?": "I prefer metric units",
    "Remember that I work at 3.5 GHz e.g. on radios. Ok?": "I work at 3.5 GHz e.g. on radios.",
    "Remember that I like tea, please.": "I like tea.",
    "  remember   that  I   smoke ": "I smoke",
    "Remember to always answer in metric units.": "always answer in metric units.",
    "Remember to never use emojis": "never use emojis",
    "REMEMBER THAT MY CAR IS RED": "MY CAR IS RED",
    "Remember that our office closes at five.": "our office closes at five.",
    "Merk dir, dass ich Vegetarier bin. Was koche ich?": "ich Vegetarier bin.",
    "Bitte merke dir: Ich wohne in Köln.": "Ich wohne in Köln.",
    "Merke dir bitte, dass meine Tochter Ida heißt!": "meine Tochter Ida heißt!",
    "Souviens-toi que je suis allergique aux noix.": "je suis allergique aux noix.",
    "Retenez qu'il faut me vouvoyer.": "il faut me vouvoyer.",
    "S'il te plaît, rappelle-toi que j'habite à Lyon. Que faire ?": "j'habite à Lyon.",
    "Recuerda que soy vegetariano. ¿Qué cocino?": "soy vegetariano.",
    "Por favor, acuérdate de que vivo en Quito.": "vivo en Quito.",
    "Ricordati che sono celiaco.": "sono celiaco.",
    "Per favore ricorda che abito a Roma": "abito a Roma",
    "Lembre-se de que moro no Porto.": "moro no Porto.",
    "Lembra-te que sou alérgico a nozes": "sou alérgico a nozes",
    "Onthoud dat ik geen vlees eet. Wat eten we?": "ik geen vlees eet.",
    "Onthoud alsjeblieft: ik woon in Gent.": "ik woon in Gent.",
    "Запомни, что я вегетарианец. Что приготовить?": "я вегетарианец.",
    "Пожалуйста, запомните: у меня аллергия на орехи.": "у меня аллергия на орехи.",
    "请记住我对花生过敏。今晚吃什么？": "我对花生过敏。",
    "記住，我住在台北": "我住在台北",
    "请帮我记住：我不吃肉。": "我不吃肉。",
    "私はベジタリアンだと覚えておいてください。": "私はベジタリアンだ",
    "私が猫を飼っていることを覚えておいて。名前は？": "私が猫を飼っている",
    "覚えておいて：私は東京に住んでいます。": "私は東京に住んでいます。",
}
OTHERS = [
    "Do you remember that time in Paris?",
    "Do you remember that I like tea?",
    "Remember that time we went to Paris?",
    "Remember that time we went to Paris. It rained.",
    "Remember when we talked about cats?",
    "Remember the Alamo",
    "Remember me?",
    "Remember my birthday?",
    "Remember: true",
    "I can't remember that song's name.",
    "I remember that I was happy.",
    "Remember that I told you about my dog. He is ill.",
    "Remember I asked you about Rust yesterday.",
    "Remember that I like tea?",
    "Remember to buy milk.",
    "Remember that.",
    "remember",
    "Remember:",
    '"Remember that I love you" is a line of which song?',
    "> remember that I am vegan",
    "```\nremember that I am vegan\n```",
    "`remember that x = 1`",
    "# Remember that I am vegan",
    "Translate: remember that I am vegan",
    "What can I cook? Remember that I am vegan.",
    "remembering that I am vegan is hard",
    "Rememberthat I am vegan",
    "Merk dir das!",
    "Weißt du noch, dass ich Vegetarier bin?",
    "Te souviens-tu que je suis allergique ?",
    "¿Recuerdas que soy vegetariano?",
    "Ti ricordi che sono celiaco?",
    "Lembras-te de que moro no Porto?",
    "Weet je nog dat ik geen vlees eet?",
    "Ты помнишь, что я вегетарианец?",
    "你记得我喜欢什么吗？",
    "记得我吗？",
    "记住单词的方法",
    "私がベジタリアンだと覚えていますか？",
    "覚えていますか",
    "",
    "   ",
]


@pytest.mark.parametrize(("message", "fact"), REQUESTS.items(), ids=REQUESTS)
def test_a_deliberate_request_gives_its_fact(message, fact):
    assert fact_to_remember(message) == fact


@pytest.mark.parametrize("message", OTHERS)
def test_what_is_no_request_gives_nothing(message):
    assert fact_to_remember(message) is None


@pytest.mark.parametrize(
    "message", [f"Remember: {'I am ' * 40_000}", "覚えて" * 40_000, "と" * 100_000, "please " * 40_000]
)
def test_a_very_long_message_is_searched_only_at_its_beginning(message):
    assert len(fact_to_remember(message) or "") <= 20_000
