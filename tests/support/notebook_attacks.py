"""Notebook cells that try to escape the isolation of a run.

In: `HOST`, a dictionary of facts about the machine from the test. Out: cells; most print ESCAPED if they succeed.
Never: an attack that would harm the machine if it worked; dangerous attacks target objects that the test created.
"""

from __future__ import annotations

from textwrap import dedent

OPENING = """
import contextlib, ctypes, errno, os, pathlib, signal, socket, stat, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def tried(call):
    try:
        return call()
    except BaseException as problem:
        print(type(problem).__name__)

def escaped(what):
    if what:
        print('ESCAPED', str(what)[:200])

def reads(path):
    escaped(tried(lambda: HOST['canary'] in open(path, errors='replace').read()))

def writes(path):
    escaped(tried(lambda: open(path, 'a').write('# written by a notebook\\n')))
"""

# Each value is one cell; the kernel can continue after it.
QUIET: dict[str, str] = {
    # read files outside the run
    "read a key of argosy": "reads(HOST['data'] + '/secret.key')",
    "read a file of argosy that all may read": "reads(HOST['data'] + '/open.txt')",
    "list the folder of argosy": "escaped(tried(lambda: 'secret.key' in os.listdir(HOST['data'])))",
    "read the claim of another job": "reads(HOST['data'] + '/volumes/other/claim/weights')",
    "list the claims": "escaped(tried(lambda: os.listdir(HOST['data'] + '/volumes')))",
    "read the workspace of another run": "reads(HOST['data'] + '/runs/other/job/1-1/work/note')",
    "list the mirrors": "escaped(tried(lambda: os.listdir(HOST['data'] + '/mirrors')))",
    "climb out of the repository": "reads('../' * 40 + HOST['data'].lstrip('/') + '/open.txt')",
    "follow a link of its own": "os.symlink(HOST['data'], 'link-out')\nreads('link-out/open.txt')",
    "link a file in": "tried(lambda: os.link(HOST['data'] + '/open.txt', 'hard'))\nreads('hard')",
    "read the users of the machine": "escaped(tried(lambda: 'root' in open('/etc/passwd').read()))",
    "read the passwords of the machine": "escaped(tried(lambda: open('/etc/shadow').read()))",
    "list the home of root": "escaped(tried(lambda: os.listdir('/root')))",
    "list all homes": "escaped(tried(lambda: os.listdir('/home')))",
    "see processes": "escaped(tried(lambda: [each for each in os.listdir('/proc') if each.isdigit()]))",
    "read the environment of the first process": "escaped(tried(lambda: open('/proc/1/environ').read()))",
    "read the environment of its parent": "escaped(tried(lambda: open(f'/proc/{os.getppid()}/environ').read()))",
    "mount the processes": """
        os.makedirs('proc', exist_ok=True)
        escaped(libc.mount(b'proc', b'proc', b'proc', 0, None) == 0)""",
    "mount a disk": "os.makedirs('m', exist_ok=True)\nescaped(libc.mount(b'/dev/sda1', b'm', b'ext4', 0, None) == 0)",
    "mount the machine's root elsewhere": """
        os.makedirs('r', exist_ok=True)
        escaped(libc.mount(b'/', b'r', None, 4096, None) == 0)""",
    "leave a changed root folder": """
        os.makedirs('jail', exist_ok=True)
        if tried(lambda: os.chroot('jail')) is None and os.getuid() != 0:
            print('refused')
        else:
            for _ in range(50):
                os.chdir('..')
            os.chroot('.')
            reads(HOST['data'] + '/open.txt')""",
    "open a file by its number": """
        handle = ctypes.create_string_buffer(struct.pack('Ii', 8, 1) + struct.pack('II', 2, 0))
        escaped(libc.open_by_handle_at(os.open('.', os.O_RDONLY), handle, os.O_RDONLY) >= 0)""",
    "use a descriptor that was left open": """
        for number in range(3, 256):
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.fstat(number).st_mode):
                    for at in ('.', '..', '../..', '../../..'):
                        with contextlib.suppress(OSError):
                            opened = os.open(at, os.O_RDONLY, dir_fd=number)
                            found = os.listdir(opened)
                            os.close(opened)
                            escaped({'secret.key', 'volumes'} & set(found))""",
    "make a device": "escaped(tried(lambda: os.mknod('disk', 0o600 | stat.S_IFBLK, os.makedev(8, 0)) is None))",
    "read the memory of the machine": "escaped(tried(lambda: open('/dev/mem', 'rb').read(1)))",
    "read the log of the machine": "escaped(tried(lambda: open('/dev/kmsg', 'rb').read(1)))",
    "list the hardware": "escaped(tried(lambda: os.listdir('/sys')))",
    # write to files that a run can read, but must not change
    "write over argosy": "import argosy\nwrites(argosy.__file__)",
    "put a module beside argosy": "import argosy\nwrites(os.path.join(os.path.dirname(argosy.__file__), 'x.py'))",
    "start with every Python": "import nbformat\nwrites(os.path.dirname(nbformat.__path__[0]) + '/evil.pth')",
    "write over the standard library": "writes(os.__file__)",
    "write over the interpreter": "writes(os.path.realpath(sys.executable))",
    "write to a program of the machine": "writes('/usr/bin/env')",
    # The /tmp of the run may contain a folder of the same name: the test checks if the real folder was written.
    "write to the folder of argosy": "tried(lambda: open(HOST['data'] + '/written', 'w').write('x'))",
    "plan a job of the machine": "writes('/etc/cron.d/evil')",
    "write to a mounted secret": "writes('/keys/token')",
    "write to a claim that is mounted read-only": "writes('/frozen/weights')",
    "make a mounted folder writable": """
        libc.mount(None, b'/frozen', None, 32 | 4096, None)
        writes('/frozen/weights')""",
    "make the root folder writable": "libc.mount(None, b'/', None, 32, None)\nwrites('/evil')",
    # environment variables
    "find a variable of argosy": "escaped(HOST['canary'] in repr(dict(os.environ)))",
    "find a variable of argosy in memory": """
        environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, 'environ')
        found, number = [], 0
        while environ[number]:
            found.append(environ[number]); number += 1
        escaped(any(HOST['canary'].encode() in each for each in found))""",
    # privileges and other processes
    "become root": "escaped(tried(lambda: os.setuid(0) is None))",
    "become root by a program": """
        for name in ('su', 'sudo', 'pkexec', 'newgrp'):
            out = tried(lambda: subprocess.run([name, '-c', 'id -u'], input=b'', capture_output=True, timeout=9).stdout)
            escaped(out and out.strip() == b'0')""",
    "become root by a file": """
        import shutil
        shutil.copy('/bin/sh', 'sh'); os.chmod('sh', 0o6755)
        out = subprocess.run(['./sh', '-p', '-c', 'id -u || echo $EUID'], capture_output=True, timeout=60).stdout
        escaped(out.strip().startswith(b'0'))""",
    "become root among users of its own": """
        if libc.unshare(0x10000000) == 0:
            tried(lambda: open('/proc/self/uid_map', 'w').write(f'0 {os.getuid()} 1'))
            os.makedirs('u', exist_ok=True)
            libc.unshare(0x00020000)
            if libc.mount(b'proc', b'u', b'proc', 0, None) == 0:
                escaped([each for each in os.listdir('u') if each == str(HOST['pid'])])""",
    "signal a process of the same user": "escaped(tried(lambda: os.kill(HOST['sleeper'], 0) is None))",
    "end a process of the same user": "escaped(tried(lambda: os.kill(HOST['sleeper'], signal.SIGKILL) is None))",
    "end argosy": "escaped(tried(lambda: os.kill(HOST['pid'], signal.SIGKILL) is None))",
    "hold argosy": "escaped(libc.ptrace(16, HOST['pid'], None, None) == 0)",
    "hold its own runner": "escaped(libc.ptrace(16, os.getppid(), None, None) == 0)",
    "seize its own runner": "escaped(libc.ptrace(0x4206, os.getppid(), None, None) == 0)",
    "write to the memory of its runner": """
        text = ctypes.create_string_buffer(b'x' * 8)
        local = struct.pack('PN', ctypes.addressof(text), 8)
        ctypes.set_errno(0)
        libc.process_vm_writev(os.getppid(), local, 1, local, 1, 0)
        escaped(ctypes.get_errno() != errno.EPERM)""",
    "enter the namespaces of another": "escaped(tried(lambda: libc.setns(os.open('/proc/1/ns/mnt', 0), 0) == 0))",
    "take descriptors of its runner": """
        number = libc.syscall(434, os.getppid(), 0)
        escaped(any(libc.syscall(438, number, each, 0) >= 0 for each in range(32)))""",
    "go before all others": "escaped(tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20) is None))",
    "take the processor for itself": """
        escaped(tried(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)) is None))""",
    "attach to shared memory of another": "escaped(libc.shmget(HOST['shared'], 0, 0) >= 0)",
    "load a module into the kernel": "escaped(libc.syscall(175, b'x', 1, b'') == 0)",
    # network access
    "call a port of this machine": """
        escaped(tried(lambda: socket.create_connection(('127.0.0.1', HOST['tcp']), 2)))""",
    "call a port of this machine by its name": """
        escaped(tried(lambda: socket.create_connection(('localhost', HOST['tcp']), 2)))""",
    "call its outer address": "escaped(tried(lambda: socket.create_connection((HOST['address'], HOST['tcp']), 2)))",
    "send a packet": """
        tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'out', ('127.0.0.1', HOST['udp'])))""",
    "ask for the machine's identity": """
        escaped(tried(lambda: socket.create_connection(('169.254.169.254', 80), 2)))""",
    "find a name": "escaped(tried(lambda: socket.getaddrinfo('example.com', 443)))",
    "call an abstract socket": """
        escaped(tried(lambda: socket.socket(socket.AF_UNIX).connect('\\0' + HOST['abstract']) is None))""",
    "call a socket in a folder": """
        escaped(tried(lambda: socket.socket(socket.AF_UNIX).connect(HOST['data'] + '/door') is None))""",
    "listen to the wire": "escaped(tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)))",
    "send raw packets": "escaped(tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)))",
    "be called from outside": """
        door = tried(lambda: socket.create_server(('0.0.0.0', HOST['listens'])))
        time.sleep(0.5)""",
    # results of this run and state of the next run
    "write its own results": """
        for name in ('/workspace/results.json', 'results.json', '/workspace/output.ipynb', '/workspace/events.jsonl'):
            tried(lambda: open(name, 'w').write('{"status": "succeeded", "error": ""}'))""",
    "write among the lines of its runner": """
        line = b'{"event": "results", "results": {"status": "succeeded", "forged": true}}\\n'
        for number in range(256):
            with contextlib.suppress(OSError):
                if stat.S_ISFIFO(os.fstat(number).st_mode):
                    os.set_blocking(number, False)
                    os.write(number, line)""",
    "leave something for the next run": """
        for path in ('/workspace/.ipython/profile_default/startup/x.py', '/workspace/.local/lib/x.pth', '/tmp/next'):
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(path).write_text('print("ESCAPED from the run before")')""",
    "show a page that acts": """
        from IPython.display import HTML, Javascript, display
        display(HTML('<script>ESCAPE()</script>')); display(Javascript('ESCAPE()'))""",
}  # fmt: skip

# Each value needs its own notebook, because it may crash the kernel or the runner.
VIOLENT: dict[str, str] = {
    "a fork bomb": """
        def bomb():
            while True:
                with contextlib.suppress(OSError):
                    if os.fork() == 0:
                        os.execvp('sleep', ['sleep', HOST['marker']])
        bomb()""",
    "a daemon": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp('sleep', ['sleep', HOST['marker']])
            os._exit(0)""",
    "a thread bomb": """
        held = threading.Event()
        while True:
            threading.Thread(target=held.wait, daemon=True).start()""",
    "a disk filled with files": """
        for number in range(10_000):
            with open(f'/tmp/{number}', 'wb') as file:
                file.write(b'x' * (1 << 20))
            time.sleep(0.002)""",
    "a disk filled through a claim": """
        for number in range(10_000):
            with open(f'/models/{number}', 'wb') as file:
                file.write(b'x' * (1 << 20))
            time.sleep(0.002)""",
    "a disk filled with files that have no name": """
        held = []
        for number in range(200):
            held.append(open(f'/tmp/{number}', 'wb')); os.unlink(f'/tmp/{number}')
            for _ in range(30):
                held[-1].write(b'x' * (1 << 20)); held[-1].flush(); time.sleep(0.002)""",
    "a disk filled with names": """
        for number in range(300_000):
            os.close(os.open(f'/tmp/{number}', os.O_CREAT | os.O_WRONLY))""",
    "one endless file": """
        with open('/tmp/endless', 'wb') as file:
            while True:
                file.write(b'x' * (1 << 20))""",
    "memory without end": "held = []\nwhile True:\n    held.append(bytearray(b'x') * (8 << 20))",
    "memory without end in many processes": """
        for _ in range(8):
            if os.fork() == 0:
                held = []
                while True:
                    with contextlib.suppress(MemoryError):
                        held.append(b'x' * (1 << 20)); time.sleep(0.002)
        time.sleep(60)""",
    "memory in files without a name": """
        held = []
        while True:
            number = os.memfd_create('x')
            held.append(number)
            for _ in range(8):
                os.write(number, b'x' * (1 << 20)); time.sleep(0.002)""",
    "memory shared with nobody": """
        while True:
            number = libc.shmget(0, 8 << 20, 0o1600)
            if number < 0:
                raise OSError('refused')
            libc.shmat.restype = ctypes.c_void_p
            at = libc.shmat(number, None, 0)
            ctypes.memset(at, 1, 8 << 20); libc.shmdt(ctypes.c_void_p(at))""",
    "the end of its runner": "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)",
    "a runner that is held up": "os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(60)",
    "all processes that it can see": "os.kill(-1, signal.SIGKILL)\ntime.sleep(60)",
    "a flood of output": "for _ in range(400):\n    print('x' * (1 << 20))",
    "folders too deep and closed": """
        for _ in range(3000):
            os.mkdir('d'); os.chdir('d')
        os.chdir('/workspace'); os.makedirs('closed/inner'); os.chmod('closed', 0)""",
    "deaf to signals": """
        for number in range(1, 65):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)""",
}  # fmt: skip


def cell(source: str) -> str:
    return dedent(source).strip()
