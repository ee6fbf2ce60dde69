# Mounts a file system at the folder given as argument. It has the folder `proj`, and answers until a line arrives on
# stdin; from then on it answers nothing, as a network file system whose server has gone. Ends with its stdin.
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
ROOT, PROJ = 1, 2


def attributes(node):
    return struct.pack('<6Q10I', node, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, os.getuid(), os.getgid(), 0, 4096, 0)


def answer(op, node, body):
    if op == INIT:
        return 0, struct.pack('<4I2H2I2H7I', 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)[:64]
    if op == GETATTR:
        return 0, struct.pack('<Q2I', 0, 0, 0) + attributes(node)
    if op == LOOKUP and body.split(b'\0')[0] == b'proj':
        return 0, struct.pack('<4Q2I', PROJ, 1, 0, 0, 0, 0) + attributes(PROJ)
    if op == LOOKUP:
        return -2, b''
    if op == OPENDIR:
        return 0, struct.pack('<Q2I', 0, 0, 0)
    if op in (READDIR, RELEASE, RELEASEDIR, ACCESS):
        return 0, b''
    return -38, b''


print('mounted', flush=True)
dead = False
while True:
    ready, _, _ = select.select([sys.stdin] if dead else [sys.stdin, fd], [], [])
    if sys.stdin in ready:
        if not sys.stdin.readline():
            sys.exit(0)
        dead = True
        print('dead', flush=True)
    elif fd in ready:
        request = os.read(fd, 1 << 20)
        _, op, unique, node = struct.unpack('<2I2Q', request[:24])
        if op in (FORGET, BATCH_FORGET):
            continue
        code, data = answer(op, node, request[40:])
        os.write(fd, struct.pack('<IiQ', 16 + len(data), code, unique) + data)
