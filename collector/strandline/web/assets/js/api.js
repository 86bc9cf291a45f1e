// Everything the page shows comes from the public API.
class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || `the server answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

async function answer(response) {
  if (response.status === 204) return null;
  const text = await response.text();
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    content = { detail: text.slice(0, 300) };
  }
  if (response.ok) return content;
  if (response.status === 401) window.dispatchEvent(new Event("strandline:login"));
  throw new ApiError(response.status, content);
}

// An array gives its parameter several times.
export function address(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") query.append(name, one);
    }
  }
  return query.size ? `${path}?${query}` : path;
}

export const get = async (path, params, signal) =>
  answer(await fetch(address(`/api/v2${path}`, params), { signal }));

export const send = async (method, path, body, signal) =>
  answer(
    await fetch(path, {
      method,
      signal,
      headers: { "Content-Type": "application/json", "X-Strandline-Page": "1" },
      body: body === undefined ? undefined : JSON.stringify(body),
    }),
  );

export const health = async () => answer(await fetch("/healthz"));

export const post = (path, body, signal) => send("POST", `/api/v2${path}`, body, signal);

export async function session(method = "GET", key = undefined) {
  return answer(
    await fetch("/ui/session", { method, body: key, headers: { "X-Strandline-Page": "1" } }),
  );
}

// All items of a list, page by page, up to `most`; `more` says whether the list goes on, `total`
// how many it has where the API counts them.
export async function list(path, params, most = 100, signal = undefined) {
  const items = [];
  let cursor = null,
    total;
  do {
    const page = await get(
      path,
      { ...params, limit: Math.min(100, most - items.length), cursor },
      signal,
    );
    items.push(...page.items);
    cursor = page.nextCursor;
    total ??= page.total;
  } while (cursor && items.length < most);
  return { items, more: Boolean(cursor), total };
}
