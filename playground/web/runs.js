// Runs in workers, one for each contender. A run that is no longer needed is ended at once.

const KEPT = 12;

class Lane {
  #worker = null;
  #waiting = null;
  #id = 0;

  play(fragment, contender) {
    if (this.#waiting) this.#end(new Error("superseded"));
    this.#worker ??= this.#started();
    const id = ++this.#id;
    return new Promise((resolve, reject) => {
      this.#waiting = { id, resolve, reject };
      this.#worker.postMessage({ id, fragment, contender });
    });
  }

  #started() {
    const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => {
      if (this.#waiting?.id !== data.id) return;
      if (data.error) return this.#end(new Error(data.error));
      this.#waiting.resolve(data.played);
      this.#waiting = null;
    });
    worker.addEventListener("error", event => this.#end(new Error(event.message || "the worker could not start")));
    return worker;
  }

  #end(error) {
    this.#worker?.terminate();
    this.#worker = null;
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.reject(error);
  }
}

export class Runs {
  #lanes = [new Lane(), new Lane()];
  #kept = new Map();

  // The run of a contender; `lane` 0 or 1 is its place in the charts.
  async of(lane, fragment, contender) {
    // Tidegate's run does not depend on the rival.
    const key = `${contender} ${fragment.replace(/&?rival=[^&]*/, "")}`;
    if (!this.#kept.has(key)) {
      const played = await this.#lanes[lane].play(fragment, contender);
      this.#kept.set(key, played);
      if (this.#kept.size > KEPT) this.#kept.delete(this.#kept.keys().next().value);
    }
    return this.#kept.get(key);
  }
}
