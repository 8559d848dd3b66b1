"""The how-to page is true: each of its snippets runs against a gateway, and so does each request with curl in the pages."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from asyncio import to_thread

import pytest

from gateway.standin import StandIn
from tests import fakes
from tests.e2e.test_sdks import NODE, install
from tests.running import ROOT
from tests.test_docs import blocks

FRAMEWORKS = ROOT / "build" / "frameworks" / "bin" / "python"
"""The interpreter of an environment with heavy libraries, which `make frameworks` makes."""
NO_FRAMEWORKS = not FRAMEWORKS.exists()
PATIENCE_S = 120
"""Importing a large library on a busy machine takes a while."""
SAY = 'print(client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello"}]).choices[0].message.content)'
PYTHON = [
    # page, what the snippet has, before it, after it, the interpreter that has its library
    ("howto.md", "from openai import OpenAI", "", SAY, sys.executable),
    ("README.md", "client = OpenAI(", "from openai import OpenAI", SAY, sys.executable),
    (
        "howto.md", "from anthropic import Anthropic", "",
        'print(client.messages.create(model="gpt-4o", max_tokens=99, messages=[{"role": "user", "content": "Hello"}]).content[0].text)', sys.executable,
    ),
    ("howto.md", "from openai import AzureOpenAI", "", SAY, sys.executable),
    ("howto.md", "import AzureChatOpenAI", "", 'print(model.invoke("Hello").content)', sys.executable),
    ("howto.md", "from langchain_openai import ChatOpenAI", "", 'print(model.invoke("Hello").content)', sys.executable),
    ("howto.md", "from llama_index", "", 'print(llm.complete("Hello").text)', FRAMEWORKS),
]  # fmt: skip


def snippet(page, has, language):
    """The one block of a page that has this in it."""
    [block] = [block for block in blocks(language) if block.page == page and has in block.text]
    return block.text


def at(text, gateway):
    """Point a snippet at a running gateway."""
    assert "127.0.0.1:8787" in text or "localhost:8788" in text
    admin = gateway.admin_url.removeprefix("http://")
    return text.replace("127.0.0.1:8787", f"127.0.0.1:{gateway.port}").replace("localhost:8788", admin)


def said(command, **variables):
    """Run a program as a reader would; return what it prints."""
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "sk-mine",
        "ANTHROPIC_API_KEY": "sk-mine",
        "AZURE_OPENAI_API_KEY": "sk-mine",
        **variables,
    }
    done = subprocess.run(
        command, cwd=NODE, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
async def served(gateway):
    """A gateway in front of a model that understands."""
    async with StandIn() as standin:
        yield await gateway(standin), standin


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "has", "before", "after", "python"), PYTHON, ids=[f"{row[0]} {row[1]}" for row in PYTHON]
)
async def test_each_python_snippet_reaches_the_model_with_the_clients_key(served, page, has, before, after, python):
    gateway, standin = served
    if python == FRAMEWORKS and NO_FRAMEWORKS:
        pytest.skip("the frameworks are not installed: run `make frameworks`")
    code = "\n".join([before, at(snippet(page, has, "python"), gateway), after])
    assert await to_thread(said, [str(python), "-c", code]) == "Understood."
    assert "sk-mine" in str(standin.requests[-1].headers)


async def test_the_openai_library_reads_the_base_url_from_the_environment(served):
    gateway, _ = served
    assert "OPENAI_BASE_URL=http://127.0.0.1:8787/v1" in (ROOT / "docs" / "howto.md").read_text("utf-8")
    code = f"from openai import OpenAI; client = OpenAI(); {SAY}"
    assert await to_thread(said, [sys.executable, "-c", code], OPENAI_BASE_URL=gateway.base_url) == "Understood."


async def test_the_snippet_of_the_vercel_ai_sdk_reaches_the_model(served):
    gateway, _ = served
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    await to_thread(install, NODE / "node_modules" / "ai", "npm", "ci", "--silent", cwd=NODE)
    code = at(snippet("howto.md", "createOpenAI", "js"), gateway)
    use = 'const { text } = await generateText({ model: openai("gpt-4o"), prompt: "Hello" }); console.log(text);'
    whole = f'import {{ generateText }} from "ai";\n{code}\n{use}'
    assert await to_thread(said, [node, "--input-type=module", "-e", whole]) == "Understood."


CURL = [
    (str(block), line)
    for block in blocks("sh", "bash", "console")
    for line in block.text.splitlines()
    if line.startswith("curl ")
]


@pytest.mark.parametrize("line", [line for _, line in CURL], ids=[f"{place} {line[:60]}" for place, line in CURL])
async def test_each_request_with_curl_is_answered(served, line):
    gateway, _ = served
    answer = await gateway.chat({"model": "gpt-4o", "messages": [fakes.user("Hello")]})
    request_id = answer.headers["x-turnfold-request-id"]
    async with gateway.session.get(f"{gateway.admin_url}/api/exchanges/{request_id}") as response:
        name = (await response.json())["conversation"]
    text = re.sub(r"tf-[0-9a-f]{12}-[0-9a-f]+", request_id, at(line, gateway))
    text = re.sub(r"conversations/[0-9a-f]{16}", f"conversations/{name}", text)
    [program, *words] = shlex.split(text, comments=True)
    assert program == "curl"
    found = await to_thread(said, ["curl", "--silent", "--show-error", "--fail-with-body", *words])
    assert found.splitlines()[-1][0] in "[{"  # `-i` shows headers before it


def test_some_request_with_curl_is_shown():
    assert len(CURL) >= 5


def test_the_page_says_which_snippets_no_test_runs():
    """What is written for a program that is not run here stands in `text` blocks, and the page names the program."""
    page = (ROOT / "docs" / "howto.md").read_text("utf-8")
    [told] = re.findall(r"^Not run by a test: (.*)\.$", page, re.MULTILINE)
    sections = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    unrun = {section.partition("\n")[0] for section in sections if "```text" in section}
    assert set(told.split(", ")) == unrun - {"LiteLLM in front of the gateway"}, "that one is run by tests/engines"


@pytest.mark.parametrize("section", ["Servers", "Clients"])
def test_every_yaml_block_of_the_page_is_the_gateways(section):
    """Blocks for other programs' files are not marked as YAML: tests/test_docs.py loads each as a configuration of ours."""
    assert blocks("yaml")
    text = (ROOT / "docs" / "howto.md").read_text("utf-8").partition(f"## {section}")[2]
    assert "```yaml" in text
