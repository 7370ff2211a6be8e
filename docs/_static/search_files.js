// A browser fetches no page from a folder on the disk (file://): the search reads the texts of all pages from a script.
if (location.protocol === "file:") {
  const root = document.documentElement.dataset.content_root;
  let texts;
  const load = () => texts ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = `${root}page_texts.js`;
    script.onload = () => done(PAGE_TEXTS);
    script.onerror = () => failed(new Error(`cannot read ${script.src}`));
    document.head.append(script);
  });
  window.fetch = async (page) => new Response((await load())[String(page).slice(root.length)] ?? "");
}
