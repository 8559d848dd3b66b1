"""Normalise texts about size to a small controlled language, in which one thing has one word.

``The input (516,368 tokens) is longer than the model's context length (262144 tokens).`` becomes ``prompt #516368 token
over model context #262144 token .`` Overflows can then be described by short patterns over a few dozen words, for any
phrasing, punctuation or language. Unknown words become ``~``; words without meaning here (articles, auxiliaries)
disappear. This module knows single words only; `signs` and `sizes` interpret sequences of them.
"""

import re
import unicodedata
from functools import cache
from typing import Final

HEAD_WORDS: Final = 100
"""Words kept from the beginning of a statement. Chosen: refusals state the reason first, tracebacks last (`TAIL_WORDS`)."""

LARGEST_TEXT: Final = 8000
"""Characters of a statement in its normal form that are read: half from its beginning, half from its end. One character may have a normal form
of eighteen."""

TAIL_WORDS: Final = 50
"""Words kept from the end of a statement; see `HEAD_WORDS`."""

NOISE: Final = re.compile(
    r"\bb(?=['\"])"  # the repr of bytes
    r"|https?://\S+"  # the address of a page, which contains misleading words
    r"|\binput (?:should|validation error)\b:?"  # pydantic and TGI call every field an input
    r"|\[\w+=[^\]]*\]"  # [address=127.0.0.1:41233, pid=5412]
    r"|input_value=.*?(?=, input_type=|\]|$)"  # pydantic repeats the rejected value
    r"|\b(?:variant|value|model|function|tool|property|option|type|deployment|engine|name|argument|field|text was):? *(?:[`'\"][^`'\"]*[`'\"][\s,]*)+"
    r"|\(?\b(?:request|trace|ray|req|log|session|internal|correlation)[ _-]?ids?[:= ]+[\w-]*\d[\w-]*\)?"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?=[a-z\d]*\d)(?=\d*[a-z])[a-z\d]{16,}\b"
    r"|\(parameter=\w+, value=[^)]*\)"  # vLLM states the limit twice, here without a unit
    r"|<\d{3}>|(?<=[\w\]])\[\d+\]|\[\d+\](?=\[)"  # <400>, messages[3], [1261][Prompt too long]
    r"|\(2013\)"  # MiniMax's code, which looks like a size
    r"|\b(?:error |status |http )*(?:code|status|http)[ :=]+\d+\b"
    r"|\d{4}-\d\d-\d\d\S*|\b\d\d?:\d\d\b\S*|\b\d+(?:\.\d+){2,}\S*",  # dates, times, host addresses
    re.I | re.A | re.S,
)
"""Parts of a text that are not wording: links, ids, codes, quoted names, repeated input."""

NUMBER: Final = (
    r"(?<![a-z\d_.-])(?P<sign>-)?(?P<digits>\d{1,3}(?:[,_.' ]\d{3})+(?!\d)|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<kilo>[km]|万)(?![a-z\d]))?"
    r"(?:[ -]?(?:(?P<bytes>char\w*|caract\w*|zeichen|bytes?|octets|[kmg]i?b|b|字符|个?字|文字|글자|символ|байт|%)"
    r"|(?P<time>seconds?|secs?|ms|[sh]|m\d\S*|minutes?|hours?|days?|秒|分钟))(?![a-z\d]))?"
)
"""A number with its thousands separators, its k or m, and a unit other than tokens."""

LEXICON: Final = {
    # Subjects other than size come first, because they share words with it.
    "time": (
        "context_(deadline|cancell?ed)* time*_out deadline (took|takes|taking)_(too_long|longer) duration"
        " too_long_to_(respond|complete|finish|start|load|answer|reply)"
        " (execution|response|processing|allowed|setup|wait|queue|elapsed)_time 超时 响应时间 時間"
    ),
    "auth": (
        "(access|security|bearer|auth|api|id|refresh|secret|session)_(token|key)s? invalid_token"
        " token_(has|is|was)?_(expired|invalid) zugriffstoken permission* lifetime 过期 令牌 敏感 审核"
    ),
    "absent": (
        "(does|do)_not_exist not_found not_one_of must_be_one_of"
        " unknown_(model|parameter|field|variant|argument) 不存在"
    ),
    "rate": (
        "rate_limit* ratenlimit [tr]p[mdh] [iot]pm qp[sm] per_(min|sec|hour|day|month|week)* pro_minute"
        " par_minute por_minuto в_минуту daily monthly weekly hourly quota* throttl* credit* balance billing"
        " spend* budget_exceeded afford concurren* too_many_(requests|calls|connections) please_wait"
        " (try|retry)_(again)?_(in|after) pending 频率 速率 限流 流控 每分钟 分钟内 额度 余额 配额 并发 请求数 分あたり 分間 분당"
    ),
    "media": (
        "image* picture* photo* pixel* audio video* file* pdf* page* attachment* upload* 图片 图像 文件 音频 视频 画像"
        " ファイル 이미지 imagen* bild* datei* изображен*"
    ),
    "field": (
        "functions?_(name|description|parameter)* stop(_sequences?)? prompt_(cache|template|pattern|id)*"
        " cache* temperature num_ctx top_[pk] logprobs seed schema* grammar json header* cookie* ur[il]s?"
        " title* name* description* metadata dimension* nesting depth level* recursion batch* choices propert*"
        " enum* truncat[eo]_* parallel* runs? parts? document* line column context-free context= position"
        " best_of (tool|function)_call* template* input':_array"
    ),
    "string": "strings? arrays? lists? expected_max_?length",
    "tool": "tool* function* 工具",
    # Words that reverse a comparison come before the comparison.
    "at_most": (
        "(must|should|shall|can|may|could|will)_?(not|n't)_(be_)?(exceed|(great|larg|long|high|bigg)er_than|more_than|over|above)"
        " (must|should|shall|has_to|have_to|needs?_to)_(be_|have_|contain_)*(strictly_)?"
        "((less|fewer|small|short|low)(er)?_than(_or_equal_to)?|at_most|no_(more|longer|greater)_than|up_to|within|under|<=?|≤)"
        " not_exceed not_be_exceeded under between (no|not)_(more|longer|greater|larger)_than at_most en_fazla"
        " toi_da up_to (less|fewer)_than(_or_equal_to)? (small|short)er_than <=? ≤ or_(less|fewer) range"
        " 不(能|得|可|应)?(超过|大于|多于) 小于等?于? 最多 至多 以内 まで 以下 이하 까지 hochstens au_plus como_maximo no_mas_de не_более"
        " не_больше"
    ),
    "at_least": (
        "(must|should|has_to|needs?_to)_be_(strictly_)?(great|larg|high)er_than(_or_equal_to)? at_least"
        " no_less_than minimum"
    ),
    "over token": "more_tokens",
    # llama.cpp: the window is full, and context shift is off.
    "over context": "context_shift(ing)?_is_(disabled|not_enabled|off)",
    # Anthropic: this subscription has a smaller window than the model. A shorter prompt is accepted.
    "tier": "extra_usage_is_required_for_(long|1m)_context*",
    "excess": "tokens?_over_(the|your|its|this) tokens?_too_many",
    "too_long": (
        "too_(long|large|big|many|much|lengthy) over_?sized 过长 太长 超长 过大 太大 过多 太多 過長 長すぎ*"
        " zu_(lang|gross|viele) trop_(long|grand|de_)* demasiado_[a-z]+ muito_(long|grande)* troppo_[a-z]+"
        " te_lang cok_uzun qua_dai terlalu_panjang zbyt_dlug* слишком_* 너무_*"
    ),
    "given at_least": "(resulted_in|contains?|has|have|got)_(over|more_than|at_least)",
    "over": (
        "(has_|have_|had_)?(been_)?(exceed|surpass|overflow|outgrow|exhaust)* above beyond"
        " (long|larg|great|high|bigg)er_than more_than over overrun*"
        " (does_not|doesn't|do_not|cannot|can't|won't|will_not|unable_to)_fit(_in)?(_?to)? cannot_truncate_to"
        " not_enough(_room|_space)? no_(room|space|tokens?)_(left)? r[au]n_out_of out_of used_(up_)?all"
        " reached is_full >=? ≥ 超过了? 超出了? 已超 超 大于 overschr* asiyor vuot_qua melebihi przekracza uberschr*"
        " ubersteig* depass* exced* supera* ultrapass* превы* больше 超え* 超過* 초과*"
    ),
    "reduce": (
        "reduc* shorten* compress* compact* decreas* trim truncat* cut remove condense split shorter fewer"
        " smaller lower(ing)? 精简 压缩 缩短 减少 新建 kurz* сократ* 줄여* 短く"
    ),
    # Parts of a request and measures of a model.
    "output": (
        "max[_](new_|completion_|output_|gen_|generated_)?tokens max[_]tokens_to_sample maximum[_]tokens"
        " max(imum)?_(new|completion|output|generated)_(tokens|len*) max(imum)?_new n_predict num_predict"
        " new_tokens maximum_tokens_(you_|value) completion* output* response* generat* prediction*"
        " repl(y|ies) answer* reserved 输出 生成 回复 补全 ausgabe* antwort* reponse* respuesta* 出力 생성 출력 ответ*"
    ),
    "context": (
        "max[_](model_|seq_|sequence_|input_|prompt_|context_|num_|request_|position_)+(len|length|tokens|size|embeddings)"
        " max(imum)?_(seq|sequence|session|model)_len(gth)? model_max_(length|prompt_tokens)"
        " sequence_length_limit session_(max_)?len(gth)? n_?ctx* ctx_(size|len*) kv_(cache|memory)"
        " context_(windows?|lengths?|len)?(_size)? kontext* contexto? contexte contesto 上下文(窗口|长度)? контекст*"
        " コンテキスト(長|ウィンドウ)? 컨텍스트"
    ),
    "total token": "max[_]total[_]tokens",
    "prompt %": "(message|content|body|payload|request)_size",  # bytes, unless the text speaks of tokens
    "total": "total sum combined altogether together overall takes? take 总 合计 gesamt* insgesamt 합계",
    "prompt": (
        "n_(prompt|input)_tokens input_ids prompt* input* message* conversation* dialog* chats? sessions?"
        " history quer(y|ies) question* texts? content* instruction* sequence* n_keep prefix 提示词? 输入 消息 对话 会话"
        " 历史 文本 内容 问题 eingabe* nachricht* entree* requete* entrada* mensaje* mensage* richiesta* ввод* запрос*"
        " プロンプト 入力 メッセージ 입력 메시지 프롬프트"
    ),
    "token": "tokens? toks? jetons? токен* トークン 토큰",
    "length": "length* len size* count* number* amount* quantity longitud* longueur* lange 长度 数量 总数 大小 字数 数 長 길이 длин*",
    "limit": (
        "limit* maximum max maxim* allow* caps? capacity threshold* ceiling bound* budget support* permitted"
        " accepts? handles? available gioi_han batas window* finestra ventana fenetre janela capabilit* 上限 限制"
        " 最大值? 最高 支持 允许 限度 限 massim* grenze* erlaubt лимит* максим* предел* 최대 제한 한도 制限"
    ),
    "request": "request payload body entity 请求体? anfrage solicitud* リクエスト 요청",
    "model": "models?('s)? 模型 modell* modele* modelo* модел* モデル 모델",
    "given": (
        "requested got given received provided supplied submitted sent passed contain* has have had"
        " result(s|ed)?_in needs? requir* used uses? using current* actual* but however while 当前 实际 包含 但"
        " recib* 受け取"
    ),
    # Words that connect the others.
    "plus": "\\+ plus and with 和 与",
    "minus": "\\s-\\s",
    "of": "/",
    "by": "by",
    "none": "none",
    "": (
        "the an? of is are was were be been to in on for from at as or it its this that these your you our we"
        " my i 's which than when will would can could should must may might do does did please about"
        " approximately around only just already configured entire whole full final first single specified"
        " estimated resulting decoder encoder system user any there here now s even without so if then both"
        " either one error value upstream failed selected long longer larger into default splited exception"
        " fault di 的 了 请 个 已 set process* を が は に の て 을 를 이 가 은 는 의 der die das des dem den ist wurde fur von"
        " le la les de du est pour une? el los las del es para il lo per o os do da"
    ),
}
"""Word of the controlled language: the texts that are read as it, first match first. A text read as "" disappears.

``_`` is a space, an underscore, a hyphen or nothing; ``*`` is the rest of a word.
"""


def _pattern(phrases: str) -> str:
    """Compile one row; only Latin words need word edges, other scripts write without spaces."""
    latin: list[str] = []
    other: list[str] = []
    phrases = phrases.replace("(", "(?:")
    for written in phrases.split():
        phrase = written.replace("*", _rest(written)).replace("[_]", "\0").replace("_", r"[\x20_-]*").replace("\0", "_")
        (latin if re.match(r"[(?:]*[a-z\[]", phrase) else other).append(phrase)
    return "|".join(other + [rf"(?<![a-z\d])(?:{'|'.join(latin)})(?![a-z\d])"] * bool(latin))


def _rest(phrase: str) -> str:
    """Return a pattern for the rest of a word in the script of its beginning. One class for all scripts takes 0.2 s to
    compile."""
    script = (
        "\uac00-\ud7af"
        if re.search("[\uac00-\ud7af]", phrase)
        else "\u0400-\u04ff"
        if re.search("[\u0400-\u04ff]", phrase)
        else "a-z"
    )
    return f"[{script}]*"


@cache
def _word_pattern() -> re.Pattern[str]:
    """Compile the lexicon on first use: at the first refusal, or earlier in an idle moment."""
    rows = (f"|(?P<w{number}>{_pattern(phrases)})" for number, phrases in enumerate(LEXICON.values()))
    return re.compile(NUMBER + STOP + "".join(rows) + UNKNOWN, re.A)


STOP: Final = r"|(?P<stop>[.;!?](?=[\s\"')\]]|$)|[。！？；\n]|:(?=\s*[^\s\d]))"
UNKNOWN: Final = r"|(?P<unknown>\?\?|[a-z\d][a-z\d'.-]*|[\u0400-\u04ff]+|[\u3040-\u30ff]|[\u4e00-\u9fff\uac00-\ud7af])"
_WORDS: Final = tuple(LEXICON)
_LATIN: Final = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
_IDENTIFIER: Final = re.compile(r"(?<![a-z\d])[a-z\d]+(?:_[a-z\d]+)+")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def both_ends(text: str, characters: int) -> str:
    """Return a text of more characters as its beginning and its end, half of them from each; another text as it is."""
    return text if len(text) <= characters else f"{text[: characters // 2]} . {text[-characters // 2 :]}"


def normalise(text: str) -> str:
    """Return the text in the controlled language: words separated by single spaces, with a space at both ends."""
    text = unicodedata.normalize("NFKC", text)
    text = NOISE.sub(" ", both_ends(text, LARGEST_TEXT))
    text = _LATIN.sub(
        lambda found: unicodedata.normalize("NFKD", found[0])[0], _CAMEL.sub("_", text).replace("ß", "ss")
    )
    text = _IDENTIFIER.sub(_known_identifier, text.lower().replace("`", "").replace("’", "'"))
    words: list[str] = []
    for found in _word_pattern().finditer(text):
        word = _word(found)
        if word and not (word in "~." and words and words[-1] == word):
            words.append(word)
    if len(words) > HEAD_WORDS + TAIL_WORDS:
        words = [*words[:HEAD_WORDS], ".", *words[-TAIL_WORDS:]]
    return f" {' '.join(words)} "


def _known_identifier(identifier: re.Match[str]) -> str:
    """Keep a name of several words only when all its words are known: ``context_length_exceeded``, not
    ``..._behavior``."""
    known = all(found.lastgroup != "unknown" for found in _word_pattern().finditer(identifier[0]))
    return identifier[0] if known else " ?? "


def _word(found: re.Match[str]) -> str:
    """Return the word of the controlled language for a match."""
    kind = found.lastgroup or ""
    if found["digits"] is not None:
        return _number(found)
    if kind == "stop":
        return "."
    return _WORDS[int(kind[1:])] if kind != "unknown" else "~"


def _number(found: re.Match[str]) -> str:
    """Return ``#4096`` for a possible token count, ``%`` for characters and bytes, ``~`` for a number that is not a
    size."""
    if found["bytes"]:
        return "%"
    if found["time"]:
        return "time"
    digits = found["digits"]
    if re.fullmatch(r"\d{1,3}(?:[,_.' ]\d{3})+", digits):
        digits = re.sub(r"\D", "", digits)
    number = float(digits) * {"k": 1e3, "m": 1e6, "万": 1e4}.get(found["kilo"] or "", 1)
    return f"#{'-' if found['sign'] else ''}{int(number)}" if number < 1e9 else "~"
