"""A server on this machine that answers as a test requests: whole, slowly, cut, broken. It writes HTTP by hand, because no
library can send most of these answers. Uses only Python's standard library."""

import os
import socket
import ssl
import struct
import subprocess
import threading

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "streams")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


def stream(dialect):
    """The recorded answer of llama-server in this dialect."""
    with open(os.path.join(FOLDER, dialect + ".sse"), "rb") as file:
        return file.read()


def head(status=200, kind="text/event-stream", **headers):
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def chunked(body, size=700):
    """The body in chunks, with the end mark."""
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def whole(body):
    """A whole answer that streams `body`; the connection stays usable."""
    return head(Transfer_Encoding="chunked") + chunked(body)


class Request:
    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body


class FaultyServer:
    """`answer(server, connection, request)` sends what it likes; the connection is closed if it returns False."""

    def __init__(self, answer, context=None):
        self.answer = answer
        self.context = context
        self.requests = []  # all requests that have come
        self.closed = threading.Semaphore(0)  # released for each connection that the other side has closed
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(128)
        self.port = self.listener.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # otherwise the thread in accept() would keep it open
        except OSError:
            pass
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            file = connection.makefile("rb")
            while request := self._read(file):
                self.requests.append(request)
                if self.answer(self, connection, request) is False:
                    break
            else:
                self.closed.release()
        except (OSError, ssl.SSLError, ValueError):
            self.closed.release()
        finally:
            try:
                connection.shutdown(socket.SHUT_RDWR)  # the file holds a copy of the descriptor
            except OSError:
                pass
            connection.close()

    @staticmethod
    def _read(file):
        line = file.readline()
        if not line:
            return None
        method, path, _ = line.decode().split()
        headers = {}
        while (line := file.readline().decode().strip()):
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        return Request(method, path, headers, file.read(int(headers.get("content-length", 0))))


def models(connection, request):
    """Answers a request for the list of models; returns True if the request was another one."""
    if request.method != "GET":
        return True
    body = b'{"object":"list","data":[]}'
    connection.sendall(head(kind="application/json", Content_Length=len(body)) + body)
    return False


def says(data, more=True):
    """An answer with these bytes; without `more`, the connection is closed afterwards."""
    def answer(server, connection, request):
        if models(connection, request):
            connection.sendall(data)
            return more
        return True
    return answer


def resets(data=b""):
    """Sends these bytes, and resets the connection."""
    def answer(server, connection, request):
        if models(connection, request):
            connection.sendall(data)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        return True
    return answer


def certificate(folder, name, days, subject="/CN=127.0.0.1", alternative="IP:127.0.0.1"):
    """Makes a self-signed certificate; returns a context for a server, and the path of the certificate."""
    cert, key = (os.path.join(folder, f"{name}.{end}") for end in ("pem", "key"))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-subj", subject,
               "-addext", f"subjectAltName={alternative}"]
    if days < 0:  # `openssl req` can't make an expired certificate, so the certificate is signed again, with dates
        request = os.path.join(folder, name + ".csr")
        extensions = os.path.join(folder, name + ".ext")
        with open(extensions, "w") as file:
            file.write(f"subjectAltName={alternative}\nbasicConstraints=critical,CA:TRUE\n")
        subprocess.run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", subject],
                       check=True, capture_output=True)
        subprocess.run(["openssl", "x509", "-req", "-in", request, "-signkey", key, "-out", cert, "-days", str(days),
                        "-extfile", extensions], check=True, capture_output=True)
    else:
        subprocess.run([*command, "-days", str(days)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert
