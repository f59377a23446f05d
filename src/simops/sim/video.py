# pyright: basic
# The only file that meets PyAV, whose types are partly unknown.
"""Films in memory: H.264 or AV1 for the eye, FFV1 where not one bit may be lost, GIF for pages."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import av
import av.error
import numpy as np
from PIL import Image

from simops.core.errors import DataError
from simops.core.signal import Array

Codec: TypeAlias = Literal["h264", "av1", "ffv1"]

_ENCODER: dict[Codec, str] = {"h264": "libx264", "av1": "libsvtav1", "ffv1": "ffv1"}
_OPTIONS: dict[Codec, dict[str, str]] = {
    "h264": {"crf": "18", "preset": "veryfast", "x264-params": "cpu-independent=1"},
    "av1": {"crf": "28", "preset": "9", "svtav1-params": "lp=1"},
    "ffv1": {"level": "3", "slicecrc": "1"},
}


def encode(frames: Iterable[Array], *, fps: float, codec: Codec = "h264") -> bytes:
    """Make a film of (height, width, 3) uint8 frames or, with `ffv1`, (height, width) uint16 ones.

    `h264` and `av1` are MP4 in 4:2:0, which loses a little; `ffv1` is Matroska and gives every bit back. Only `ffv1`
    is the same bytes every time: x264 was seen to code the same pictures otherwise, once in some thousand films.
    """
    os.environ.setdefault("SVT_LOG", "1")  # the AV1 encoder greets on stderr otherwise
    sink = io.BytesIO()
    kind = "matroska" if codec == "ffv1" else "mp4"
    with av.open(sink, "w", format=kind, options={"fflags": "+bitexact"}) as container:  # no random names inside
        stream: Any = None
        for picture in frames:
            if stream is None:
                stream = container.add_stream(_ENCODER[codec], rate=Fraction(fps).limit_denominator(1000))
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = "gray16le" if picture.ndim == 2 else "bgr0" if codec == "ffv1" else "yuv420p"
                stream.options = _OPTIONS[codec]
                stream.codec_context.thread_count = 1  # whatever the machine has
            layout = "gray16le" if picture.ndim == 2 else "rgb24"
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format=layout)
            container.mux(stream.encode(frame))
        if stream is None:
            raise DataError("a film of no frames")
        container.mux(stream.encode())
    return sink.getvalue()


def decode(film: bytes) -> Array:
    """Every frame of a film, (n, height, width, 3) uint8, or (n, height, width) uint16 if it was made so."""
    try:
        with av.open(io.BytesIO(film), "r") as container:
            frames = [
                frame.to_ndarray(format="gray16le" if frame.format.name == "gray16le" else "rgb24")
                for frame in container.decode(video=0)
            ]
    except av.error.FFmpegError as error:
        raise DataError(f"a film does not decode: {error}") from error
    return np.stack(frames)


def gif(frames: Sequence[Array], *, fps: float) -> bytes:
    """Make an endless GIF; all frames share one palette, so that still parts do not flicker."""
    if not frames:
        raise DataError("a film of no frames")
    sample = np.concatenate([frame[::2, ::2] for frame in frames[:: max(1, len(frames) // 8)]])
    palette = Image.fromarray(sample).quantize(256, method=Image.Quantize.FASTOCTREE)
    drawn = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    sink = io.BytesIO()
    pause_ms = max(20, 10 * round(100.0 / fps))
    drawn[0].save(sink, "GIF", save_all=True, append_images=drawn[1:], duration=pause_ms, loop=0, optimize=False)
    return sink.getvalue()
