"""No text that reaches the page runs, and no request leaves it."""

import json
from pathlib import Path

from conversations.markdown import render
from tests.browser.conftest import answered, directed, send

CORPUS = json.loads((Path(__file__).parent.parent / "js" / "corpus.json").read_text())
PAYLOADS = [
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    "<svg/onload='window.ran = 1'>",
    "<iframe srcdoc='<script>parent.ran = 1</script>'></iframe>",
    "<details open ontoggle='window.ran = 1'>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.ran=1>",
    "</script><script>window.ran = 1</script>",
    "</textarea><script>window.ran = 1</script>",
    "'\"><script>window.ran = 1</script>",
    "{{ 7 * 7 }}{% debug %}",
    "[a](javascript:window.ran=1)",
    "![a](javascript:window.ran=1)",
    "![leak](http://leak.invalid/x.png)",
    '[a](https://example.org" onmouseover="window.ran=1)',
    '```"><img src=x onerror=window.ran=1>\ncode\n```',
    "<style>@import 'http://leak.invalid/x.css'</style>",
    "<link rel=stylesheet href=http://leak.invalid/x.css>",
    "<base href=http://leak.invalid/>",
    "<form action=http://leak.invalid><input name=q></form>",
    "<a href='javascript:window.ran=1'>x</a>",
]
BUILD = """
async (texts) => {
  const { newParser } = await import("/static/js/markdown/parser.js");
  const { nodesOf } = await import("/static/js/markdown/nodes.js");
  const parser = newParser();
  return texts.map((text) => {
    const box = document.createElement("div");
    box.append(nodesOf(parser.parse(text, {})));
    return box.innerHTML;
  });
}
"""
GROW = """
async (corpus) => {
  const { newParser } = await import("/static/js/markdown/parser.js");
  const { nodesOf } = await import("/static/js/markdown/nodes.js");
  const { StreamedMarkdown } = await import("/static/js/markdown/streamed_markdown.js");
  const differs = ([, text]) => {
    const [grown, whole] = [document.createElement("div"), document.createElement("div")];
    document.querySelector("main").append(grown);
    const markdown = new StreamedMarkdown(grown);
    for (const character of text) {
      markdown.append(character);
      markdown.render({ isFinished: false });
    }
    markdown.render({ isFinished: true });
    whole.append(nodesOf(newParser().parse(text, {})));
    for (const added of grown.querySelectorAll("[data-added]")) added.remove();
    grown.remove();
    grown.normalize();
    whole.normalize();
    return !grown.isEqualNode(whole);
  };
  return Object.entries(corpus).filter(differs).map(([name]) => name);
}
"""
SAME = """
pairs => {
  const parse = (html) => new DOMParser().parseFromString(html, "text/html").body;
  return pairs.filter(([, one, other]) => !parse(one).isEqualNode(parse(other)));
}
"""


async def test_no_payload_runs_in_a_message_an_answer_or_a_title_and_no_request_leaves(alice):
    left = []
    alice.context.on("request", lambda request: left.append(request.url))
    page = await alice.open()
    text = "\n\n".join(PAYLOADS)
    await send(page, directed(text, text=text))
    await answered(page)
    await page.click(".conversation-row__more")
    await page.fill("[name=title]", "<img src=x onerror='window.ran=1'>")
    await page.click("button:text('Rename')")
    await page.wait_for_selector(".top-bar__title >> text=onerror")
    for _ in range(2):
        assert await page.evaluate("window.ran") is None
        assert (
            await page.locator(
                "main img, main iframe, main script:not([type]), .messages form:not([data-action])"
            ).count()
            == 0
        )
        await page.reload()
        await page.wait_for_selector("chat-answer:defined")
    assert [url for url in left if not url.startswith(alice.site.url)] == []


async def test_the_page_forbids_what_it_does_not_need(alice):
    page = await alice.context.new_page()
    answer = await page.goto(alice.site.url)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "nonce-" in policy
    with_inline_handlers = (
        "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on|^style$/.test(a.name)))"
    )
    assert await page.evaluate(f"{with_inline_handlers}.length") == 0


async def test_the_browser_builds_the_very_nodes_that_the_server_sends(alice, browser):
    page = await alice.open()
    texts = list(CORPUS.values())
    built = await page.evaluate(BUILD, texts)
    blank = await browser.new_page()
    pairs = [[name, render(text), html] for (name, text), html in zip(CORPUS.items(), built, strict=True)]
    assert await blank.evaluate(SAME, pairs) == []
    await blank.close()


async def test_what_was_written_piece_by_piece_ends_as_the_very_nodes_of_the_whole(alice):
    page = await alice.open()
    assert await page.evaluate(GROW, CORPUS) == []


async def test_every_prefix_of_the_corpus_written_live_runs_nothing(alice):
    page = await alice.open()
    prefixes = [text[:length] for text in CORPUS.values() for length in range(0, len(text), 5)]
    html = await page.evaluate(BUILD, prefixes)
    assert not any("<script" in one or "<img" in one or 'href="javascript' in one for one in html)
    assert await page.evaluate("window.ran") is None
