# SPDX-License-Identifier: Apache-2.0
"""Epochs of an input pipeline of TensorFlow or PyTorch, timed: the peers of bench_epochs.

usage: pipelines.py LIBRARY DATA FOLDER BATCH WORKERS VARIANT
LIBRARY is tensorflow or pytorch; DATA is jpeg (a folder a class in FOLDER/train) or cifar (data_batch_*.bin in it). All
give shuffled batches of float32 from 0 to 1, with a class each: of 224 x 224 pixels, or of 32 x 32 with a random crop of
4 and a random flip.
WORKERS is a number or auto (tf.data.AUTOTUNE). VARIANT, joined by +:
  jpeg     antialias     the filter that torchvision takes by default; without it all resize alike
           floats        workers give floats; otherwise bytes, which become floats where the step is
           accurate      TensorFlow: decoded by INTEGER_ACCURATE, as all others do; its default is INTEGER_FAST, whose
                         pixels are up to 4 levels away
           pil           PyTorch: datasets.ImageFolder, Resize and ToTensor as its documentation has them
  cifar    batched       PyTorch: a batch is augmented at once, with indices; otherwise sample by sample
           pil           PyTorch: images of PIL, RandomCrop, RandomHorizontalFlip, ToTensor
  plain    none of them
After its imports it prints one line and waits. Then each line on stdin is answered with one line: `epoch`, one from its
beginning, workers alive; the path of a file that bench_epochs has written of the first images in the order of their
names: how far its levels, 0 to 255, are from this library's. At the end of stdin: one last line with what it is.
"""
import glob
import json
import os
import re
import sys
import time

SIDE, CIFAR_SIDE, CIFAR_PAD = 224, 32, 4
CIFAR_RECORD_BYTES = 1 + 3 * CIFAR_SIDE * CIFAR_SIDE
SHUFFLE = 10000
PREFETCH = 2  # batches, where it is a number


def say(answer):
    print(json.dumps(answer), flush=True)


def training_folder(folder):
    return os.path.join(folder, "train")


def files_and_labels(folder):
    classes = sorted(os.listdir(folder))
    found = [(path, k) for k, name in enumerate(classes) for path in sorted(glob.glob(os.path.join(folder, name, "*")))]
    return [path for path, _ in found], [k for _, k in found]


def training_files(folder):
    return sorted(glob.glob(os.path.join(folder, "data_batch_*.bin")))


def distance(path, images):
    """Of float32 in a file, from 0 to 1, to images from 0 to 255."""
    import numpy
    had = 255 * numpy.fromfile(path, numpy.float32).reshape(-1, SIDE, SIDE, 3)
    apart = [numpy.abs(one - image) for one, image in zip(had, images)]
    return {"images": len(apart), "largest": float(max(a.max() for a in apart)),
            "mean": float(sum(a.mean() for a in apart) / len(apart))}


class TensorFlow:
    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow
        self.name = "tensorflow " + tensorflow.__version__
        self.tf = tensorflow

    def workers(self, word):
        return self.tf.data.AUTOTUNE if word == "auto" else int(word)

    def jpeg(self, folder, variant):
        tf = self.tf
        files, labels = files_and_labels(training_folder(folder))
        method = "INTEGER_ACCURATE" if "accurate" in variant else ""

        def read(path, label):
            image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method=method)
            return tf.image.resize(image, [SIDE, SIDE]) / 255.0, label

        return tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files)), read

    def images(self, folder):
        """As floats; never rounded."""
        for path in files_and_labels(folder)[0]:
            image = self.tf.io.decode_jpeg(self.tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE")
            yield self.tf.image.resize(image, [SIDE, SIDE]).numpy()

    def cifar(self, folder, _):
        tf = self.tf

        def read(record):
            values = tf.io.decode_raw(record, tf.uint8)
            image = tf.transpose(tf.reshape(values[1:], [3, CIFAR_SIDE, CIFAR_SIDE]), [1, 2, 0])
            image = tf.pad(image, [[CIFAR_PAD, CIFAR_PAD], [CIFAR_PAD, CIFAR_PAD], [0, 0]])
            image = tf.image.random_crop(image, [CIFAR_SIDE, CIFAR_SIDE, 3])
            image = tf.image.random_flip_left_right(image)
            return tf.cast(image, tf.float32) / 255.0, tf.cast(values[0], tf.int32)

        return tf.data.FixedLengthRecordDataset(training_files(folder), CIFAR_RECORD_BYTES).shuffle(SHUFFLE), read

    def open(self, data, folder, batch, workers, variant):
        source, read = getattr(self, data)(folder, variant)
        ahead = self.tf.data.AUTOTUNE if workers == "auto" else PREFETCH
        made = source.map(read, num_parallel_calls=self.workers(workers), deterministic=False)
        self.dataset = made.batch(batch).prefetch(ahead)

    def epoch(self):
        for images, _ in self.dataset:
            yield images.shape[0]


class Pytorch:
    def __init__(self):
        import torch
        import torch.utils.data
        import torchvision
        import torchvision.transforms.v2
        self.name = "pytorch " + torch.__version__ + ", torchvision " + torchvision.__version__
        self.torch, self.vision = torch, torchvision

    def jpeg(self, folder, variant):
        torch, vision, folder = self.torch, self.vision, training_folder(folder)
        if "pil" in variant:
            change = vision.transforms.Compose([vision.transforms.Resize((SIDE, SIDE)), vision.transforms.ToTensor()])
            return vision.datasets.ImageFolder(folder, change), None
        files, labels = files_and_labels(folder)
        antialias, floats = "antialias" in variant, "floats" in variant

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(files)

            def __getitem__(self, k):
                image = vision.io.decode_jpeg(vision.io.read_file(files[k]), mode=vision.io.ImageReadMode.RGB)
                image = vision.transforms.v2.functional.resize(image, [SIDE, SIDE], antialias=antialias)
                if floats:
                    return image.float().div_(255.0), labels[k]
                return image.permute(1, 2, 0), labels[k]  # as it lies in memory: batches are copied faster

        return Images(), None if floats else lambda images: images.permute(0, 3, 1, 2).float().div_(255.0)

    def images(self, folder):
        """As bytes."""
        vision = self.vision
        for path in files_and_labels(folder)[0]:
            image = vision.io.decode_jpeg(vision.io.read_file(path), mode=vision.io.ImageReadMode.RGB)
            image = vision.transforms.v2.functional.resize(image, [SIDE, SIDE], antialias=False)
            yield image.permute(1, 2, 0).float().numpy()

    def records(self, folder):
        torch = self.torch
        read = b"".join(open(name, "rb").read() for name in training_files(folder))
        records = torch.frombuffer(bytearray(read), dtype=torch.uint8).view(-1, CIFAR_RECORD_BYTES)
        return records[:, 1:].reshape(-1, 3, CIFAR_SIDE, CIFAR_SIDE), records[:, 0].long()

    def cifar(self, folder, variant):
        torch, vision = self.torch, self.vision
        images, labels = self.records(folder)
        if "pil" in variant:
            return self.cifar_of_pil(images, labels), None
        wide = torch.nn.functional.pad(images, [CIFAR_PAD] * 4) if "batched" in variant else None
        change = vision.transforms.v2.Compose([
            vision.transforms.v2.RandomCrop(CIFAR_SIDE, CIFAR_PAD), vision.transforms.v2.RandomHorizontalFlip()])

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(images)

            def __getitem__(self, k):
                return change(images[k]), labels[k]

        class Batched(Images):
            def __getitems__(self, numbers):
                n, rows = torch.tensor(numbers), torch.arange(CIFAR_SIDE)
                down, right = torch.randint(2 * CIFAR_PAD + 1, (2, len(n), 1))
                columns = torch.where(torch.rand(len(n), 1) < 0.5, rows, CIFAR_SIDE - 1 - rows) + right
                planes = torch.arange(3).view(1, 3, 1, 1)
                picked = wide[n.view(-1, 1, 1, 1), planes, (rows + down)[:, None, :, None], columns[:, None, None, :]]
                return picked, labels[n]

        return Batched() if "batched" in variant else Images(), lambda batch: batch.float().div_(255.0)

    def cifar_of_pil(self, images, labels):
        """As torchvision.datasets.CIFAR10, whose own files are pickles."""
        torch, transforms = self.torch, self.vision.transforms
        from PIL import Image
        arrays, numbers = images.permute(0, 2, 3, 1).contiguous().numpy(), labels.tolist()
        change = transforms.Compose([transforms.RandomCrop(CIFAR_SIDE, CIFAR_PAD), transforms.RandomHorizontalFlip(),
                                     transforms.ToTensor()])

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(numbers)

            def __getitem__(self, k):
                return change(Image.fromarray(arrays[k])), numbers[k]

        return Images()

    def open(self, data, folder, batch, workers, variant):
        dataset, self.last = getattr(self, data)(folder, variant)
        count = int(workers)
        more = {"prefetch_factor": PREFETCH, "persistent_workers": True} if count > 0 else {}
        if "batched" in variant:
            more["collate_fn"] = list
        self.loader = self.torch.utils.data.DataLoader(dataset, batch, shuffle=True, num_workers=count, **more)
        if count == 0:
            self.torch.set_num_threads(2)

    def epoch(self):
        for images, _ in self.loader:
            yield len(images if self.last is None else self.last(images))


def run_epoch(peer):
    began, samples, first = time.perf_counter(), 0, None
    for count in peer.epoch():
        first = first or time.perf_counter() - began
        samples += count
    return {"samples": samples, "seconds": time.perf_counter() - began, "first_batch_seconds": first}


def cuda_bytes():
    """Resident bytes of the CUDA libraries that the usual build maps even where there is no card."""
    total, end, ours = 0, None, False
    for line in open("/proc/self/smaps"):
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+\s*(.*)", line)
        if head:
            follows = head[1] == end and head[3] == ""
            ours = (ours and follows) or bool(re.search(r"/nvidia/|/cuda/|lib(torch|c10)_cuda", head[3]))
            end = head[2]
        elif line.startswith("Rss:") and ours:
            total += int(line.split()[1]) * 1024
    return total


def main():
    library, data, folder, batch, workers, variant = sys.argv[1:7]
    peer = {"tensorflow": TensorFlow, "pytorch": Pytorch}[library]()
    say({})
    opened = False
    for line in sys.stdin:
        if line.strip() != "epoch":
            say(distance(line.strip(), peer.images(training_folder(folder))))
            continue
        if not opened:  # what it holds counts, other than what it imported
            peer.open(data, folder, int(batch), workers, variant.split("+"))
            opened = True
        say(run_epoch(peer))
    say({"peer": peer.name, "cuda_bytes": cuda_bytes()})


if __name__ == "__main__":
    main()
