// The playhead: where in the run the page is, and how fast it goes on.

export class Player {
  at = 0;
  // While the run is played again, the rest of it is not known.
  isHeld = false;
  #duration = 0;
  #since = null;
  #speed = 10;

  // `moved` is called with the time whenever it changes; `changed` when it starts or stops.
  constructor(moved, changed) {
    this.moved = moved;
    this.changed = changed;
  }

  get isPlaying() {
    return this.#since !== null;
  }

  get isOver() {
    return this.at >= this.#duration;
  }

  set speed(speed) {
    this.#speed = speed;
  }

  // For another run the playhead stays where it is, if the run is long enough.
  take(duration) {
    this.#duration = duration;
    this.seek(this.at);
  }

  play() {
    if (this.isOver) this.at = 0;
    this.#since = performance.now();
    this.changed();
    requestAnimationFrame(now => this.#frame(now));
  }

  pause() {
    this.#since = null;
    this.changed();
  }

  seek(at) {
    this.at = Math.min(this.#duration, Math.max(0, at));
    this.moved(this.at);
  }

  #frame(now) {
    if (!this.isPlaying) return;
    const passed = Math.max(0, now - this.#since) / 1000;
    this.#since = now;
    if (!this.isHeld) this.seek(this.at + passed * this.#speed);
    if (this.isOver) this.pause();
    else requestAnimationFrame(later => this.#frame(later));
  }
}
