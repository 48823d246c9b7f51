// All words of the page, in every language it speaks. To add a language, add its entry to TEXTS and to LABELS.

const TEXTS = {
  en: {
    name: "English",
    other: "中文",
    otherLabel: "Switch to Chinese (中文)",
    skip: "Go to the message field",
    nav: "Page",
    help: "Help now",
    menu: "Conversation menu",
    themeAuto: "Colours: as your system. Switch to light",
    themeLight: "Colours: light. Switch to dark",
    themeDark: "Colours: dark. Follow your system",
    saveMarkdown: "Save as Markdown",
    saveJson: "Save as JSON",
    delete: "Delete the conversation …",
    conversation: "Conversation",
    welcomeTitle: "What is on your mind?",
    welcomeText: "Write about your day, something that hurts, or something that made you happy.",
    starters: ["Something good happened today", "I have been worrying a lot lately", "I miss somebody"],
    factProgram:
      "You are talking with a program, not with a person. It can misunderstand you and say things that are wrong.",
    factTherapy: "It is not therapy and not a crisis service. “Help now”, at the top, shows people who can help.",
    factPrivacy:
      "The conversation is kept in this browser until you delete it. To be answered, it is sent to the server of this page.",
    messageLabel: "Your message",
    messagePlaceholder: "Write here …",
    send: "Send",
    stop: "Stop",
    disclosure: "listenwell is a program, not a person, and it can be wrong.",
    options: "How it replies",
    modelLabel: "Who replies",
    modelSpeaks: "Speaks {languages}.",
    speaksOnly: "{model} understands {languages} only.",
    intentLabel: "What the reply should do",
    intentAny: "Whatever seems right",
    intentDoes: "Do",
    intentExpresses: "Express",
    positivityLabel: "Choose how much it looks on the bright side",
    positivity: "How much it looks on the bright side",
    positivityLow: "stays with your mood",
    positivityHigh: "cheers you up",
    positivityShown: "bright side {percent}",
    severalLabel: "Weigh several replies and say the best one",
    severalAbout: "This takes longer, and the words come all at once.",
    severalShown: "best of several",
    you: "You:",
    writing: "listenwell is writing.",
    says: "listenwell:",
    retry: "Another reply",
    edit: "Edit",
    undo: "Take back",
    ask: "Ask again",
    undone: "Your last message and its reply were taken back.",
    putBack: "Put back",
    editing: "You are editing your last message. Sending it replaces the reply.",
    cancel: "Cancel",
    stopped: "You stopped this reply.",
    stoppedEarly: "Stopped before anything was said. Your message is back in the field.",
    keptEarlier: "No new reply came, so the earlier one stays.",
    noOther: "It found no other words this time.",
    empty: "(It said nothing.)",
    why: "Why this reply",
    heard: "heard: {emotion}",
    does: "plan: {label}",
    whyHeard: "What it heard in your words",
    whyPlan: "What it wanted to do",
    whyOthers: "What else it considered",
    whyFind: "Show what else it could say",
    whyNoOthers: "Nothing else.",
    whyNotFound: "That could not be found out just now.",
    whyEarlier: "Earlier replies",
    whyMore: "More reasons",
    whyLikeliest: "What it expected a good listener to do:",
    reasons: { heard: "turn by turn", now: "your mood now", plan: "about the plan", positivity: "bright side" },
    whyModel: "Written by {model}",
    whyCare: "These words are fixed; no model wrote them. A sign of danger was noticed, and that may be wrong.",
    whyLanguage: "These words are fixed; no model wrote them.",
    careLabel: "People who can help",
    careMore: "Show everybody who can help",
    helpTitle: "People who can help",
    helpText: "If you are in danger, or might hurt yourself or somebody else, please talk to a person now.",
    helpEmergency: "In an emergency",
    helpProgram: "This page is a program: it cannot see you or call anyone for you.",
    helpDefault: [
      { name: "In an emergency", contact: "your local emergency number" },
      { name: "A helpline in your country", contact: "findahelpline.com", note: "most are free" },
    ],
    close: "Close",
    keyTitle: "This server asks for a key",
    keyText: "Whoever runs it can give you one. It is kept until you close this tab.",
    keyWrong: "The server did not accept this key.",
    keyUse: "Use this key",
    keyNeeded: "The server needs a key to answer.",
    deleteTitle: "Delete this conversation?",
    deleteText: "It is kept in this browser and nowhere else. Once deleted, nobody can bring it back.",
    deleteConfirm: "Delete",
    keep: "Keep it",
    deleted: "The conversation is deleted.",
    offline: "You are offline. What you write is kept here and sent as soon as you are back.",
    waitOffline: "You are offline. Your message is kept and will be sent as soon as you are back.",
    waitBroken: "The connection broke. Asking again …",
    waitBusy: "Many people are writing just now. Trying again in {seconds} s …",
    waitTab: "This is being answered in another tab.",
    problemConnection: "The server cannot be reached. Your message is kept here.",
    problemServer: "Something went wrong on the server. Your message is kept here.",
    problemBusy: "Too many people are writing just now. Your message is kept here; please try again in a while.",
    problemTooLong: "This message is too long for the server. You can edit it, or send it in parts.",
    problemModels: "The server cannot be reached just now. You can write; your message will be kept.",
    noStorage: "This browser does not let the page keep anything: the conversation ends when you close the tab.",
    exportTitle: "Conversation with {model}",
    exportYou: "You",
    languages: { en: "English", zh: "Chinese" },
    and: " and ",
  },
  zh: {
    name: "中文",
    other: "English",
    otherLabel: "切换到英文 (English)",
    skip: "跳到输入框",
    nav: "页面",
    help: "紧急求助",
    menu: "对话菜单",
    themeAuto: "颜色：跟随系统。切换为浅色",
    themeLight: "颜色：浅色。切换为深色",
    themeDark: "颜色：深色。改为跟随系统",
    saveMarkdown: "保存为 Markdown",
    saveJson: "保存为 JSON",
    delete: "删除对话…",
    conversation: "对话",
    welcomeTitle: "今天想聊些什么？",
    welcomeText: "可以说说你的一天，说说让你难过的事，或者让你开心的事。",
    starters: ["今天发生了一件好事", "我最近总是很担心", "我很想念一个人"],
    factProgram: "和你对话的是一个程序，不是人。它可能会误解你，也可能说错话。",
    factTherapy: "它不是心理治疗，也不是危机热线。点右上方的“紧急求助”，可以找到能帮助你的人。",
    factPrivacy: "对话只保存在这个浏览器里，随时可以删除。为了得到回复，它会发送到本页面的服务器。",
    messageLabel: "你想说的话",
    messagePlaceholder: "写在这里…",
    send: "发送",
    stop: "停止",
    disclosure: "listenwell 是一个程序，不是人，可能会说错话。",
    options: "怎样回复",
    modelLabel: "由谁回复",
    modelSpeaks: "语言：{languages}。",
    speaksOnly: "{model} 只听得懂{languages}。",
    intentLabel: "希望它怎样回应",
    intentAny: "由它决定",
    intentDoes: "做什么",
    intentExpresses: "表达什么",
    positivityLabel: "调整回复的积极程度",
    positivity: "回复的积极程度",
    positivityLow: "贴近你的心情",
    positivityHigh: "多一些鼓舞",
    positivityShown: "积极 {percent}",
    severalLabel: "先想几个回复，再说最好的一个",
    severalAbout: "需要更长时间，回复会一次全部出现。",
    severalShown: "择优",
    you: "你：",
    writing: "listenwell 正在回复。",
    says: "listenwell：",
    retry: "换一个回复",
    edit: "修改",
    undo: "撤回",
    ask: "再试一次",
    undone: "已撤回你的上一句话和它的回复。",
    putBack: "恢复",
    editing: "你正在修改上一句话，发送后会替换原来的回复。",
    cancel: "取消",
    stopped: "你停止了这条回复。",
    stoppedEarly: "还没开始回复就停止了。你的话已放回输入框。",
    keptEarlier: "没有得到新的回复，保留原来的。",
    noOther: "这一次它没有想到别的话。",
    empty: "（它什么也没说。）",
    why: "为什么这样回复",
    heard: "听到：{emotion}",
    does: "打算：{label}",
    whyHeard: "它从你的话里听到的",
    whyPlan: "它想做的",
    whyOthers: "它还考虑过的",
    whyFind: "看看它还可能怎么说",
    whyNoOthers: "没有别的了。",
    whyNotFound: "现在没能查到。",
    whyEarlier: "之前的回复",
    whyMore: "其他原因",
    whyLikeliest: "它认为好的倾听者会做的：",
    reasons: { heard: "逐句听到的", now: "你此刻的心情", plan: "关于打算", positivity: "积极程度" },
    whyModel: "由 {model} 写成",
    whyCare: "这些话是固定的，不是模型写的。程序察觉到了危险的信号，也可能是误判。",
    whyLanguage: "这些话是固定的，不是模型写的。",
    careLabel: "可以找到帮助的地方",
    careMore: "查看所有可以求助的地方",
    helpTitle: "可以找到帮助的地方",
    helpText: "如果你有危险，或者可能会伤害自己或别人，请现在就找一个人说说。",
    helpEmergency: "紧急情况",
    helpProgram: "这个页面是一个程序，看不见你，也不能替你打电话。",
    helpDefault: [
      { name: "紧急情况", contact: "当地的紧急求助电话" },
      { name: "你所在国家或地区的援助热线", contact: "findahelpline.com", note: "多数免费" },
    ],
    close: "关闭",
    keyTitle: "这个服务器需要密钥",
    keyText: "可以向服务器的管理者索取。密钥只保留到你关闭这个标签页。",
    keyWrong: "服务器不接受这个密钥。",
    keyUse: "使用这个密钥",
    keyNeeded: "服务器需要密钥才能回复。",
    deleteTitle: "删除这段对话？",
    deleteText: "它只保存在这个浏览器里。删除之后，谁也无法恢复。",
    deleteConfirm: "删除",
    keep: "保留",
    deleted: "对话已删除。",
    offline: "你现在没有联网。你写的话会留在这里，恢复联网后马上发送。",
    waitOffline: "你现在没有联网。你的话已保留，恢复联网后马上发送。",
    waitBroken: "连接中断了，正在重新请求…",
    waitBusy: "现在使用的人很多，{seconds} 秒后再试…",
    waitTab: "另一个标签页正在等待这条回复。",
    problemConnection: "连接不上服务器。你的话已保留在这里。",
    problemServer: "服务器出了点问题。你的话已保留在这里。",
    problemBusy: "现在使用的人太多了。你的话已保留在这里，请过一会儿再试。",
    problemTooLong: "这段话太长了，服务器读不完。可以修改一下，或者分几次发送。",
    problemModels: "暂时连接不上服务器。你可以先写，写下的话会保留。",
    noStorage: "这个浏览器不允许页面保存内容：关闭标签页后对话就会消失。",
    exportTitle: "与 {model} 的对话",
    exportYou: "你",
    languages: { en: "英语", zh: "中文" },
    and: "、",
  },
};

// What a label is called. English names are the labels themselves.
const LABELS = {
  en: {},
  zh: {
    afraid: "害怕", angry: "生气", annoyed: "烦恼", anticipating: "期待", anxious: "焦虑", apprehensive: "担忧",
    ashamed: "羞愧", caring: "关心", confident: "自信", content: "满足", devastated: "心碎", disappointed: "失望",
    disgusted: "厌恶", embarrassed: "尴尬", excited: "兴奋", faithful: "忠诚", furious: "愤怒", grateful: "感激",
    guilty: "内疚", hopeful: "充满希望", impressed: "钦佩", jealous: "嫉妒", joyful: "喜悦", lonely: "孤独",
    nostalgic: "怀旧", prepared: "有准备", proud: "自豪", sad: "悲伤", sentimental: "感伤", surprised: "惊讶",
    terrified: "恐惧", trusting: "信任",
    agreeing: "认同", acknowledging: "理解", encouraging: "鼓励", consoling: "安慰", sympathizing: "同情",
    suggesting: "建议", questioning: "询问", wishing: "祝愿", neutral: "平静",
    anger: "生气", disgust: "厌恶", fear: "害怕", happiness: "快乐", happy: "快乐", like: "喜欢", sadness: "悲伤",
    surprise: "惊讶", other: "其他", none: "无",
  },
};

// What a reply with each of the eight intents does, for the person who reads it.
const MEANINGS = {
  en: {
    agreeing: "shares your view",
    acknowledging: "shows that it understood what you feel",
    encouraging: "gives you heart to go on",
    consoling: "comforts you, and hopes for better",
    sympathizing: "feels with you, and says that it is sorry",
    suggesting: "offers an idea of what you could do",
    questioning: "asks about what happened",
    wishing: "wishes you well, or congratulates you",
  },
  zh: {
    agreeing: "赞同你的看法",
    acknowledging: "让你知道它懂你的感受",
    encouraging: "给你继续的勇气",
    consoling: "安慰你，盼着事情好起来",
    sympathizing: "体会你的难处",
    suggesting: "提一个你可以试试的办法",
    questioning: "问问发生了什么",
    wishing: "祝福你，或者恭喜你",
  },
};

export const INTENTS = Object.keys(MEANINGS.en);

let language = "en";

export function currentLanguage() {
  return language;
}

export function otherLanguage() {
  return language === "en" ? "zh" : "en";
}

// The language that the browser asks for, if the page speaks it; else English.
export function preferredLanguage() {
  const wanted = navigator.languages?.length ? navigator.languages : [navigator.language ?? "en"];
  for (const tag of wanted) {
    const code = tag.slice(0, 2).toLowerCase();
    if (Object.hasOwn(TEXTS, code)) return code;
  }
  return "en";
}

// Sets the language of the page, and the text of every element that names one.
export function setLanguage(code) {
  language = Object.hasOwn(TEXTS, code) ? code : "en";
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text);
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", t(element.dataset.label));
  }
  for (const element of document.querySelectorAll("[data-placeholder]")) {
    element.placeholder = t(element.dataset.placeholder);
  }
}

// A text in the current language; {names} in it are filled in.
export function t(key, values = {}) {
  const text = TEXTS[language][key] ?? TEXTS.en[key];
  if (typeof text !== "string") return text;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? String(values[name]) : whole));
}

export function labelName(label) {
  const names = LABELS[language];
  return Object.hasOwn(names, label) ? names[label] : String(label);
}

// What a label does; "" where that has no words here.
export function labelMeaning(label) {
  const meanings = MEANINGS[language];
  return Object.hasOwn(meanings, label) ? meanings[label] : "";
}

export function languageNames(codes) {
  const names = t("languages");
  return codes.map((code) => (Object.hasOwn(names, code) ? names[code] : String(code))).join(t("and"));
}

export function percent(share) {
  return `${Math.round(100 * share)} %`;
}
