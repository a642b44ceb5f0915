"""Injection payloads for web pages. In: –. Out: 200 payloads. Never: a payload that does more than set a marker.

A payload that runs sets `window.ran`, or requests a path that starts with /ran.
"""

from __future__ import annotations

RUN = "window.ran=1"
TAGS = (
    "<script>{}</script>", "<ScRiPt>{}</sCrIpT>", "<script src=/ran></script>", "<img src=x onerror={}>",
    "<img src=x onerror='{}'>", '<svg onload="{}">', "<svg><script>{}</script></svg>", "<body onload={}>",
    "<iframe srcdoc='<script>parent.{}</script>'></iframe>", '<iframe src="javascript:parent.{}"></iframe>',
    '<a href="javascript:{}" autofocus onfocus="{}">x</a>', "<input autofocus onfocus={}>",
    "<details open ontoggle={}><summary>x</summary></details>", "<video><source onerror={}></video>",
    "<audio src=x onerror={}>", "<marquee onstart={}>x</marquee>", "<object data='javascript:{}'></object>",
    "<embed src='javascript:{}'>", "<form action='javascript:{}'><button autofocus onfocus={}>x</button></form>",
    "<math><mi xlink:href='javascript:{}'>x</mi></math>", "<link rel=stylesheet href=/ran>",
    "<meta http-equiv=refresh content='0;url=/ran'>", "<base href=/ran/>", "<style>@import '/ran';</style>",
    "<template><script>{}</script></template>", "<noscript><p title='</noscript><img src=x onerror={}>'></noscript>",
)  # fmt: skip
BEFORE = ("", '">', "'>", "</pre>", "</textarea>", "</title>", "-->", "]]>", "{{% raw %}}")
TEMPLATES = (
    "{{ 7 * 7 }}", "{% include 'layout.html' %}", "{{ frame.csrf }}", "${7*7}", "#{7*7}", "{{ self.__class__ }}",
    "javascript:window.ran=1", "data:text/html,<script>window.ran=1</script>", "\u202ereversed", "\x1b]8;;http://x\x07y",
)  # fmt: skip


def _made() -> list[str]:
    payloads = list(TEMPLATES)
    for lead in BEFORE:
        payloads += [lead.replace("{{", "{").replace("}}", "}") + payload.replace("{}", RUN) for payload in TAGS]
    return [payload.replace("\x1b", "").replace("\x07", "") for payload in dict.fromkeys(payloads)]


PAYLOADS = [*_made()[len(TEMPLATES) :]][:190] + list(TEMPLATES)
PAYLOADS = ["".join(sign for sign in payload if sign >= " ") for payload in PAYLOADS][:200]
assert len(PAYLOADS) == 200
