#!/usr/bin/env bash
# Runs test/**/*.cgroup.ts as root of a small virtual machine whose control groups are those of version 2 alone. It
# sees the files of this machine, and keeps in memory what it writes. Needs qemu-system-x86, busybox-static, kmod and
# cpio from Debian; the kernel comes from Debian too. The argument is qemu's accelerator: kvm, or tcg (the default),
# which needs nothing of the machine and takes four minutes.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

kernel="$(apt-cache depends linux-image-amd64 | awk '/Depends:/ { print $2; exit }')"
apt-get download -qq "$kernel"
dpkg-deb -x "$kernel"_*.deb kernel
release="${kernel#linux-image-}"
depmod -b kernel "$release"

mkdir -p init/bin init/modules init/proc init/sys init/dev init/host init/own init/all
cp "$(command -v busybox)" init/bin/busybox
ln -s busybox init/bin/sh
number=100
for module in virtio_pci 9pnet_virtio 9p overlay; do
  for file in $(modprobe -d "$work/kernel" -S "$release" --show-depends "$module" | awk '{ print $2 }'); do
    cp "$file" "init/modules/$number-$(basename "$file")"
    number=$((number + 1))
  done
done
cat > init/init <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
# What two of them need is there twice.
for module in /modules/*; do insmod "\$module" 2>/dev/null; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 host /host
mount -t tmpfs -o size=2g own /own
mkdir /own/upper /own/work
mount -t overlay -o lowerdir=/host,upperdir=/own/upper,workdir=/own/work all /all
mount -t proc proc /all/proc
mount -t sysfs sys /all/sys
mount -t devtmpfs dev /all/dev
mkdir -p /all/dev/pts /all/dev/shm
mount -t devpts pts /all/dev/pts
mount -t tmpfs shm /all/dev/shm
mount -t tmpfs tmp /all/tmp
mount -t tmpfs run /all/run
mount -t cgroup2 groups /all/sys/fs/cgroup
ip link set lo up
cd /
chroot /all /bin/bash -c 'cd "$root" && HOME=/tmp PATH="$PATH" BERTH_TEST_CGROUP=1 node node_modules/vitest/vitest.mjs run --reporter=verbose'
code=\$?
# The runner leaves an escape sequence on its last line.
echo
echo "exit code \$code"
poweroff -f
INIT
chmod +x init/init
(cd init && find . | cpio -o -H newc --quiet | gzip -1 > ../init.gz)

qemu-system-x86_64 -accel "${1:-tcg}" -cpu max -smp 2 -m 4096 -nographic -no-reboot \
  -kernel "kernel/boot/vmlinuz-$release" -initrd init.gz -append "console=ttyS0 panic=-1" \
  -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
  < /dev/null | tee output
grep -q '^exit code 0' output
