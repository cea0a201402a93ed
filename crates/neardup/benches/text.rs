//! Throughput of word shingle hashing in many scripts, against a scan of the same bytes:
//! `cargo bench -p neardup --bench text`. Medians over the rounds, in which all take turns.

use neardup::hash::Key;
use neardup::shingle::{Shingling, for_each_block};
use neardup::text::{Fold, Unit};
use std::hint::black_box;
use std::time::Instant;

/// Short enough to run in one slice of a busy processor.
const BYTES: usize = 1 << 17;
const ROUNDS: usize = 51;

/// Sentences, repeated: they are short of what a page of text holds, but not of its code points.
const TEXTS: [(&str, &str); 14] = [
    (
        "English",
        "The harbour authority said on Monday that the new pier will open in March, two months later than planned. ",
    ),
    (
        "German",
        "Die Hafenbehörde sagte am Montag, die neue Brücke werde im März eröffnet, später als geplant; größere Schäden gebe es nicht. ",
    ),
    (
        "Vietnamese",
        "Cảng vụ cho biết hôm thứ Hai rằng bến tàu mới sẽ mở cửa vào tháng Ba, muộn hơn hai tháng so với kế hoạch. ",
    ),
    (
        "Vietnamese, decomposed",
        "Ca\u{309}ng vu\u{323} cho bie\u{302}\u{301}t ho\u{302}m thu\u{31b}\u{301} Hai ra\u{306}\u{300}ng be\u{302}\u{301}n ta\u{300}u mo\u{31b}\u{301}i se\u{303} mo\u{31b}\u{309} cu\u{31b}\u{309}a. ",
    ),
    (
        "Russian",
        "Администрация порта сообщила в понедельник, что новый причал откроется в марте, на два месяца позже. ",
    ),
    (
        "Greek",
        "Η λιμενική αρχή ανακοίνωσε τη Δευτέρα ότι η νέα προβλήτα θα ανοίξει τον Μάρτιο, δύο μήνες αργότερα. ",
    ),
    (
        "Arabic",
        "قالت سلطة الميناء يوم الاثنين إن الرصيف الجديد سيفتح في شهر مارس، متأخرا شهرين عن الموعد المقرر. ",
    ),
    (
        "Arabic, vocalized",
        "قَالَتْ سُلْطَةُ المِينَاءِ يَوْمَ الاِثْنَيْنِ إِنَّ الرَّصِيفَ الجَدِيدَ سَيُفْتَحُ فِي شَهْرِ مَارِسَ. ",
    ),
    (
        "Hindi",
        "बंदरगाह प्राधिकरण ने सोमवार को कहा कि नया घाट मार्च में खुलेगा, योजना से दो महीने बाद। ",
    ),
    (
        "Thai",
        "การท่าเรือกล่าวเมื่อวันจันทร์ว่าท่าเรือใหม่จะเปิดในเดือนมีนาคม ช้ากว่ากำหนดสองเดือน ",
    ),
    (
        "Chinese",
        "港务局星期一表示，新码头将于三月启用，比原计划晚两个月，因为钢材交付延迟。",
    ),
    (
        "Japanese",
        "港湾局は月曜日、新しい桟橋が予定より二か月遅れて三月に開くと発表しました。",
    ),
    (
        "Korean",
        "항만청은 월요일에 새 부두가 예정보다 두 달 늦은 삼월에 문을 연다고 밝혔다. ",
    ),
    (
        "Full width",
        "Ｔｈｅ　ｈａｒｂｏｕｒ　ａｕｔｈｏｒｉｔｙ　ｓａｉｄ　ｏｎ　Ｍｏｎｄａｙ ㎏ ﬁ ﷺ ½ ",
    ),
];

fn scan(text: &str) -> u64 {
    text.bytes().map(u64::from).sum()
}

fn hash(text: &str, fold: Fold) -> u64 {
    let shingling = Shingling {
        k: 3,
        unit: Unit::Word,
        fold,
    };
    let mut sum = 0u64;
    for_each_block(
        text.as_bytes(),
        &shingling,
        &Key::from_seed(0),
        &mut |hashes| {
            sum = hashes.iter().fold(sum, |sum, hash| sum.wrapping_add(*hash));
            Ok(())
        },
    )
    .unwrap();
    sum
}

fn megabytes_a_second(text: &str, run: impl Fn(&str) -> u64) -> f64 {
    let start = Instant::now();
    black_box(run(black_box(text)));
    text.len() as f64 / 1e6 / start.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    println!(
        "{:24} {:>10} {:>10} {:>10} {:>10}",
        "MB/s", "scan", "none", "case", "marks"
    );
    for (name, sentence) in TEXTS {
        let text = sentence.repeat(BYTES / sentence.len());
        let mut rates = [(); 4].map(|()| Vec::new());
        for _ in 0..ROUNDS {
            rates[0].push(megabytes_a_second(&text, scan));
            for (rates, fold) in rates[1..]
                .iter_mut()
                .zip([Fold::None, Fold::Case, Fold::Marks])
            {
                rates.push(megabytes_a_second(&text, |text| hash(text, fold)));
            }
        }
        let [scan, none, case, marks] = rates.map(median);
        println!("{name:24} {scan:10.0} {none:10.0} {case:10.0} {marks:10.0}");
    }
}
