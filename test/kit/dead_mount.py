# Mounts a file system at the folder given as argument. It has the folder `proj` and the file `file`, and answers until a
# line arrives on stdin; from then on it answers nothing, as a network file system whose server has gone. If the line has a text, it
# still answers processes with this text in their command line. Ends with its stdin.
import ctypes
import os
import select
import stat
import struct
import sys

folder = sys.argv[1].encode()
device = '/dev/fuse'
if not os.path.exists(device):
    # A container has the file system, but not always its device.
    device = sys.argv[1] + '.device'
    os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(10, 229))
fd = os.open(device, os.O_RDWR)
options = f'fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}'.encode()
if ctypes.CDLL(None, use_errno=True).mount(b'dead', folder, b'fuse.dead', 0, options) != 0:
    sys.exit(1)
INIT, LOOKUP, FORGET, GETATTR, RELEASE, OPENDIR, READDIR, ACCESS, RELEASEDIR, BATCH_FORGET = 26, 1, 2, 3, 18, 27, 28, 34, 29, 42
INTERRUPT = 36
ROOT, PROJ, FILE = 1, 2, 3
NODES = {b'proj': PROJ, b'file': FILE}


def attributes(node):
    return struct.pack('<6Q10I', node, 0, 0, 0, 0, 0, 0, 0, 0, 0o100644 if node == FILE else 0o40755, 2, os.getuid(), os.getgid(), 0, 4096, 0)


def answer(op, node, body):
    if op == INIT:
        return 0, struct.pack('<4I2H2I2H7I', 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)[:64]
    if op == GETATTR:
        return 0, struct.pack('<Q2I', 0, 0, 0) + attributes(node)
    if op == LOOKUP:
        found = NODES.get(body.split(b'\0')[0])
        return (-2, b'') if found is None else (0, struct.pack('<4Q2I', found, 1, 0, 0, 0, 0) + attributes(found))
    if op == OPENDIR:
        return 0, struct.pack('<Q2I', 0, 0, 0)
    if op in (READDIR, RELEASE, RELEASEDIR, ACCESS):
        return 0, b''
    return -38, b''


def is_spared(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            return spared in file.read()
    except OSError:
        return False


def reply(unique, code, data):
    os.write(fd, struct.pack('<IiQ', 16 + len(data), code, unique) + data)


print('mounted', flush=True)
spared = b''
dead = False
waiting = set()
while True:
    ready, _, _ = select.select([sys.stdin] if dead and not spared else [sys.stdin, fd], [], [])
    if sys.stdin in ready:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        spared = line.strip().encode()
        dead = True
        print('dead', flush=True)
    elif fd in ready:
        request = os.read(fd, 1 << 20)
        _, op, unique, node, _, _, pid = struct.unpack('<2I2Q3I', request[:36])
        if op in (FORGET, BATCH_FORGET):
            continue
        if op == INTERRUPT:
            # A process that waits has been killed.
            (unique,) = struct.unpack('<Q', request[40:48])
            if unique in waiting:
                waiting.remove(unique)
                reply(unique, -4, b'')
        elif dead and not is_spared(pid):
            waiting.add(unique)
        else:
            reply(unique, *answer(op, node, request[40:]))
