// The search runs in a worker, and a page that is opened from a folder may not start one: there it
// runs in a hidden frame, which has the interface of a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => {
        this.dispatchEvent(new MessageEvent("message", { data }));
      };
      this.ready = new Promise((resolve) => {
        const script = this.inner.document.createElement("script");
        script.src = new URL(url, location);
        script.onload = resolve;
        this.inner.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => {
        this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
      });
    }
  };
}
