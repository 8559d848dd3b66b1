"""The servers of the benchmark: an upstream by nginx, a streaming upstream, and the proxies that stand before them."""

import sys
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.speed.processes import Running, free_port, start

ROOT = Path(__file__).resolve().parents[2]

ANSWER = (
    orjson.dumps(
        {
            "id": "chatcmpl-0123456789abcdef",
            "object": "chat.completion",
            "created": 1760000000,
            "model": "fits",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "The quick brown fox jumps over the lazy dog. " * 15},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": "$tokens", "completion_tokens": 150},
        }
    )
    .decode()
    .replace('"$tokens"', "$tokens")
)
"""About 1 KB, billed by the size of the request: a bill far too small would tell of a server that reads only a part."""

NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx-{name}.pid;
error_log {folder}/nginx-{name}.log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_max_body_size 64m;
  client_body_buffer_size 2m;
  client_body_temp_path {folder}/body-{name};
  proxy_temp_path {folder}/proxy-{name};
  fastcgi_temp_path {folder}/fastcgi-{name};
  uwsgi_temp_path {folder}/uwsgi-{name};
  scgi_temp_path {folder}/scgi-{name};
  keepalive_requests 100000000;
  {block}
}}
"""

STATIC = """
  map $content_length $tokens {{ default 230; {bills} }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    default_type application/json;
    location / {{ return 200 '{answer}'; }}
  }}
"""

BILLS = " ".join(f'"~^{kb}[0-9]{{3}}$" {kb * 1000 // 4};' for kb in range(1, 600))
"""What nginx bills by the content length: a token for four bytes, to the thousand."""

PROXY = """
  upstream models {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://models;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
"""

TURNFOLD = """
server: {{host: 127.0.0.1, port: {port}}}
admin: {{host: 127.0.0.1, port: {admin}}}
store: {{url: "memory://"}}
upstreams:
  bench: {{provider: openai, base_url: "http://127.0.0.1:{upstream}/v1"}}
models:
  fits: {{context_window: 1048576}}
  counted: {{context_window: 200000, tokenizer: o200k}}
  folded: {{context_window: {fold_window}, tokenizer: o200k}}
"""

FOLD_WINDOW = 8192
"""About an eleventh of what the folded body holds."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the benchmark keeps its files."""

    folder: Path

    def nginx(self, name: str, port: int, block: str) -> Running:
        """Start an nginx with one worker."""
        config = self.folder / f"{name}.conf"
        config.write_text(NGINX.format(folder=self.folder, name=name, block=block))
        return start(name, ["/usr/sbin/nginx", "-p", str(self.folder), "-c", str(config)], port, self.folder)

    def upstream(self) -> Running:
        """Start the upstream that answers everything at once with 1 KB."""
        port = free_port()
        return self.nginx("upstream", port, STATIC.format(port=port, answer=ANSWER, bills=BILLS))

    def streams(self) -> Running:
        """Start the upstream that answers everything with a stream."""
        port = free_port()
        return start("streams", [sys.executable, "-m", "benchmarks.speed.streams", str(port)], port, self.folder)

    def reference(self, upstream: Running) -> Running:
        """Start nginx as a proxy."""
        port = free_port()
        return self.nginx("nginx", port, PROXY.format(port=port, upstream=upstream.port))

    def bare(self, upstream: Running) -> Running:
        """Start the bare pass-through."""
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.speed.bare", f"http://127.0.0.1:{upstream.port}", str(port)]
        return start("bare", command, port, self.folder)

    def turnfold(self, upstream: Running, *, preload: bool = True, workers: int = 1) -> Running:
        """Start Turnfold as its users do; without ``preload`` vocabularies are loaded when they are needed."""
        port = free_port()
        config = self.folder / f"turnfold-{upstream.name}-{workers}.yaml"
        admin = free_port(in_a_row=workers)
        text = TURNFOLD.format(port=port, admin=admin, upstream=upstream.port, fold_window=FOLD_WINDOW)
        server = f"server: {{workers: {workers}, preload: {str(preload).lower()}, "
        config.write_text(text.replace("server: {", server))
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config)]
        return start("turnfold", command, port, self.folder)
