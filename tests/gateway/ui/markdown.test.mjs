// Markdown: text does not become markup where it should not, and a text that grows ends like the whole text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANSWER } from "./demo.mjs";
import { unit } from "./units.mjs";

const { BlockRenderer, heal, safeHref, spokenEnd } = await unit("markdown");
const whole = (text) =>
  new BlockRenderer()
    .render(text, true)
    .map(({ html }) => html)
    .join("");

test("HTML of the text is shown, never taken", () => {
  const rows = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b onclick=x>b</b>",
    "<iframe src=//x></iframe>",
    "<svg><script>1</script></svg>",
    "<a href='javascript:1'>x</a>",
    "<!-- x --><style>*{}</style>",
    "<math><mi//xlink:href=1>",
  ];
  for (const text of rows) {
    assert.doesNotMatch(whole(text), /<(?!\/?(p|br|em|strong)\b)/, text);
    assert.match(whole(text), /&lt;/, text);
  }
  assert.match(whole("a<br>b"), /a<br>b/);
});

test("links: http, https and mailto; all else is text", () => {
  for (const href of ["https://a.example/", "HTTP://a.example", "mailto:a@b.example"])
    assert.equal(safeHref(href), href);
  for (const href of [
    "javascript:alert(1)",
    "JaVaScRiPt:1",
    "data:text/html,x",
    "//x",
    "/x",
    "#x",
    "vbscript:1",
    "file:///etc/passwd",
    " https://x",
    "https://a b",
  ]) {
    assert.equal(safeHref(href), null, href);
  }
  assert.doesNotMatch(whole("[x](javascript:alert(1)) [y](data:text/html,1) <javascript:alert(1)>"), /<a /);
  assert.match(
    whole('[x](https://a.example "t\\"><script>")'),
    /title="t&quot;&gt;&lt;script&gt; \(https:\/\/a.example\)"/,
  );
});

test("a bare link ends where its address ends, in any language", () => {
  const rows = [
    ["参照 https://a.example/x。次の文", "https://a.example/x", "。次の文"],
    ["请看https://a.example/路径，然后", "https://a.example/路径", "，然后"],
    ["（https://a.example/?q=1）", "https://a.example/?q=1", "）"],
    ["「https://a.example」と", "https://a.example", "」と"],
    ["انظر https://a.example/x، ثم", "https://a.example/x", "، ثم"],
    ["देखें https://a.example/x।", "https://a.example/x", "।"],
    ["“https://a.example/x”", "https://a.example/x", "”"],
    ["https://ja.example/wiki/ジョン・レノン", "https://ja.example/wiki/ジョン・レノン", "</p>"],
    ["see https://a.example/x.", "https://a.example/x", "."],
  ];
  for (const [text, address, after] of rows) {
    const [, href, inner, rest] = /<a href="([^"]*)"[^>]*>([^<]*)<\/a>([^]*)/.exec(whole(text)) ?? [];
    assert.deepEqual([href && decodeURI(href), inner], [address, address], text);
    assert.ok(rest.startsWith(after), text);
  }
});

test("emphasis in languages without spaces", () => {
  const rows = [
    ["**重要：**これは", "<strong>重要：</strong>これは"],
    ["これは**「重要」**です。", "これは<strong>「重要」</strong>です。"],
    ["**该功能（测试）**可以", "<strong>该功能（测试）</strong>可以"],
    ["*注意。*次", "<em>注意。</em>次"],
    ["~~削除。~~次", "<del>削除。</del>次"],
    ["**중요(important)**은", "<strong>중요(important)</strong>은"],
    ["**สำคัญ:**นี่", "<strong>สำคัญ:</strong>นี่"],
    ["**𠮷野家。**次**の**語", "<strong>𠮷野家。</strong>次<strong>の</strong>語"],
    ["***太い。***次", "<em><strong>太い。</strong></em>次"],
    ["**日本語**English", "<strong>日本語</strong>English"],
    ["使用**云服务**API", "使用<strong>云服务</strong>API"],
    ["**東京**2020", "<strong>東京</strong>2020"],
    ["~~删除~~API", "<del>删除</del>API"],
    ["*注意*go", "<em>注意</em>go"],
    ["a**「語」**b", "a**「語」**b"],
    ["変数_名前_値と`**a**`", "変数_名前_値と<code>**a**</code>"],
    ["2 * 3 * 4、a** b", "2 * 3 * 4、a** b"],
    ["**bold**text and snake_case_name", "<strong>bold</strong>text and snake_case_name"],
  ];
  for (const [text, html] of rows) assert.equal(whole(text), `<p>${html}</p>\n`, text);
});

test("a picture is a link: nothing is loaded", () => {
  const html = whole("![secret](https://evil.example/?q=1)");
  assert.doesNotMatch(html, /<img/);
  assert.match(html, /<a href="https:\/\/evil.example\/\?q=1"[^>]*>Image: secret<\/a>/);
});

test("code is coloured in known languages and escaped in all", () => {
  assert.match(whole("```js\nconst x = '<b>';\n```"), /hljs-keyword.*&lt;b&gt;/);
  assert.match(whole("```nosuch\n<b>\n```"), /<code class="language-nosuch">&lt;b&gt;/);
  assert.match(whole('```"><script>\nx\n```'), /<code>x/);
});

test("a growing text: each step is whole, and the end is that of the whole text", () => {
  const texts = [
    ANSWER,
    "# A\n\n- one\n- two\n\n  more\n- three\n\n```c\nint x;\n```\n\nlast",
    "a\r\nb\r\n\r\n1. x\r\n2. y",
    "* a\n\n* b\n\n\n> q\n> r\n\ntext",
    "[a][1]\n\nb\n\n[1]: https://x.example\n",
  ];
  for (const text of texts) {
    const renderer = new BlockRenderer();
    for (let end = 0; end < text.length; end++) {
      const blocks = renderer.render(text.slice(0, end), false);
      assert.ok(blocks.length < 20);
    }
    assert.equal(
      renderer
        .render(text, true)
        .map(({ html }) => html)
        .join(""),
      whole(text),
    );
  }
});

test("a block that is behind the last one does not change while the text grows", () => {
  const renderer = new BlockRenderer();
  const settled = new Map();
  for (let end = 1; end <= ANSWER.length; end++) {
    const blocks = renderer.render(ANSWER.slice(0, end), false);
    blocks.slice(0, -1).forEach(({ html }, index) => {
      if (settled.has(index)) assert.equal(html, settled.get(index), `block ${index} at ${end}`);
      settled.set(index, html);
    });
  }
  assert.ok(settled.size >= 6);
});

test("another text starts anew", () => {
  const renderer = new BlockRenderer();
  renderer.render("first\n\nsecond", false);
  assert.equal(
    renderer
      .render("other", false)
      .map(({ html }) => html)
      .join(""),
    "<p>other</p>\n",
  );
});

test("what the end leaves open is closed", () => {
  const rows = [
    ["a **b", "a **b**"],
    ["a **", "a "],
    ["a **b *", "a **b**"],
    ["a `b", "a `b`"],
    ["a `", "a "],
    ["**a** b", "**a** b"],
    ["see [the", "see the"],
    ["see [the](https://x", "see the"],
    ["see [a](https://x) ", "see [a](https://x) "],
    ["`**`", "`**`"],
    ["```\n**a", "```\n**a"],
    ["~~~\n`a", "~~~\n`a"],
    ["- [ ] to do", "- [ ] to do"],
    ["- [", "- ["],
    ["a ~~b", "a ~~b~~"],
    ["x\n\n**b", "x\n\n**b**"],
    ["![pic](http", "pic"],
    ["2 * 3", "2 * 3"],
  ];
  for (const [text, wanted] of rows) assert.equal(heal(text), wanted, JSON.stringify(text));
});

test("a screen reader gets whole sentences", () => {
  assert.equal(spokenEnd("One. Two", 0), 4);
  assert.equal(spokenEnd("One. Two. Three", 4), 9);
  assert.equal(spokenEnd("no end", 0), 0);
  assert.equal(spokenEnd("line\nnext", 0), 5);
  assert.equal(spokenEnd("v1.2 is", 0), 0);
  assert.equal(spokenEnd("これは本です。次", 0), 7);
  assert.equal(spokenEnd("نعم؟ لا", 0), 4);
});
